import type { HttpAnswer } from "./http-client.ts";

export interface Tokens {
  readonly access: string;
  readonly refresh: string;
}

/** The tokens in an answer. @throws Error when an id token or refresh token is missing: less was done than is claimed */
export function tokensOf({ body }: HttpAnswer): Tokens {
  const {
    access_token: access,
    refresh_token: refresh,
    id_token: id,
  } = JSON.parse(body) as Record<string, unknown>;
  if (typeof access !== "string" || typeof refresh !== "string" || typeof id !== "string")
    throw new Error(`a token is missing: ${Object.keys(JSON.parse(body) as object).join(", ")}`);
  return { access, refresh };
}

/** RSA signature of 256 bytes and three parts. @throws Error when the token is anything else */
export function expectRs256(token: string): void {
  const [header = "", , signature = ""] = token.split(".");
  const { alg } = JSON.parse(Buffer.from(header, "base64url").toString()) as { alg?: string };
  if (alg !== "RS256" || Buffer.from(signature, "base64url").length !== 256)
    throw new Error("the access token is not an RS256 JWT of 2048 bits");
}

export function basicAuthorization(client: {
  readonly id: string;
  readonly secret: string;
}): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(client.id)}:${encodeURIComponent(client.secret)}`).toString("base64")}`;
}

export const formHeaders = { "content-type": "application/x-www-form-urlencoded" };

export function formBody(parameters: Record<string, string>): string {
  return new URLSearchParams(parameters).toString();
}
