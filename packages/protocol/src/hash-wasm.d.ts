// The ES module of the package, which it has no types for of its own; its entry for Node loads every hash it knows.
declare module "hash-wasm/dist/index.esm.js" {
  export { createKeccak } from "hash-wasm";
}
