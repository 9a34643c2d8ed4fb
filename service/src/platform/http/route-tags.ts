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
      "What a wallet calls; `conn` of a login's link is `/w/l/<loginId>`, to which it posts, or `/w/b/<loginId>`, which it opens in the browser. Bodies are JSON. What is signed, and what request objects and items of the inbox hold: `wallets.md`.",
  },
  account: {
    title: "Account",
    description: "With an API key as it is, without `Bearer`, in the `Authorization` header.",
  },
  kyc: {
    title: "Verified fields",
    description:
      "With an API key as it is, without `Bearer`, in the `Authorization` header. Success is `{ data, message, success: true }`; members that are not listed are ignored.",
  },
  kyb: {
    title: "Businesses",
    description:
      "With an API key as it is, without `Bearer`, in the `Authorization` header. Success is the record itself; members that are not listed are refused.",
  },
  issuer: {
    title: "Issuers",
    description:
      "For those who verify documents, with an issuer's key in the `Authorization` header.",
  },
  operations: { title: "Operations", description: "For load balancers." },
};
