/** The ids in the examples of the help and the reference page, the same everywhere. */
export const exampleIds = {
  organization: "0199c3a0-5c1e-7d4f-9a61-2b7c8e5d4f10",
  domain: "0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b5",
  client: "6f1c2a9e-1d35-4b0e-9a7e-0c4d5e6f7a8b",
  kycPackage: "0199c3a0-7c3e-7b21-9d55-a2e1f3b4c5d6",
  issuer: "0199c3a0-7f41-7b22-9d03-5a6e1c2b3d4f",
  /** The address of its wallet. */
  business: "0x8f2d5a1c7b3e49d06a1f8c2b4e7d90a35c6b1f24",
  order: "5f16f4c7f149ac4f9510d9cf8cf384038ad348b3bcdc01915f95de12df9d1b02",
  request: "01KB3C5R7T9V1X3Z5A7C9E1G3J",
} as const;
