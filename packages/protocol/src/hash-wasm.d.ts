// The ES module of the package, for which the package has no types; its entry for Node loads every hash it knows.
declare module "hash-wasm/dist/index.esm.js" {
  export { createKeccak } from "hash-wasm";
}
