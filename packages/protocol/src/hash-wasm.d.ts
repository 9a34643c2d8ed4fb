// The ES module of hash-wasm, which comes without types. The package's entry for Node would load every hash it knows.
declare module "hash-wasm/dist/index.esm.js" {
  export { createKeccak } from "hash-wasm";
}
