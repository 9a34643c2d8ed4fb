import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";

import type { MerchantError } from "./merchant-error.ts";

/**
 * Opens a JWK set from outside. The returned function throws jose's own errors if no key fits.
 *
 * @param faultOf makes the error for a malformed set, or for a malformed key in it
 */
export function openKeySet(
  set: unknown,
  faultOf: (cause: unknown) => MerchantError,
): JWTVerifyGetKey {
  let find: JWTVerifyGetKey;
  try {
    find = createLocalJWKSet(set as JSONWebKeySet);
  } catch (cause) {
    throw faultOf(cause);
  }
  return async (header, token) => {
    try {
      return await find(header, token);
    } catch (cause) {
      if (saysNoKey(cause)) throw cause;
      // jose imports a key when it is first needed. If that fails, the set is at fault, not what was signed.
      throw faultOf(cause);
    }
  };
}

function saysNoKey(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
  );
}
