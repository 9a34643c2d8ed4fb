// Adds to the interface of oidc-provider (bench/peers/oidc-provider.d.ts) what the oracle alone uses.
declare module "oidc-provider" {
  export const errors: { readonly InvalidTarget: new () => Error };
}
