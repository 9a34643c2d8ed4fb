/** The tags of routes, in the order of the reference. Names of pages in backticks are of `docs/reference/`. */
export const routeTags: Readonly<Record<string, { title: string; description: string }>> = {
  login: {
    title: "Login",
    description:
      "OAuth 2.0 and OpenID Connect. Bodies are forms; parameters that are not listed are ignored.",
  },
  wallet: {
    title: "Wallet",
    description:
      "What a wallet calls. The `conn` of a login's link is `/w/l/<loginId>`, to which the wallet posts, or `/w/b/<loginId>`, which it opens in the browser. Bodies are JSON. For what is signed, and what request objects and items of the inbox hold, see `wallets.md`.",
  },
  account: {
    title: "Account",
    description: "Send an API key in the `Authorization` header as it is, without `Bearer`.",
  },
  kyc: {
    title: "Verified fields",
    description:
      "Send an API key in the `Authorization` header as it is, without `Bearer`. Success is `{ data, message, success: true }`; members that are not listed are ignored.",
  },
  kyb: {
    title: "Businesses",
    description:
      "Send an API key in the `Authorization` header as it is, without `Bearer`. Success is the record itself; members that are not listed are refused.",
  },
  issuer: {
    title: "Issuers",
    description:
      "For parties that verify documents. Send an issuer's key in the `Authorization` header.",
  },
  operations: { title: "Operations", description: "For load balancers." },
};
