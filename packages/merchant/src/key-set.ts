import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";

import type { MerchantError } from "./merchant-error.ts";

/**
 * Finds keys in a set that somebody else wrote.
 *
 * @param faultOf the error for a set that is none, or for one of its keys; `find` throws errors of jose where no key fits
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
      // A key is imported when it is first needed: one that is none says nothing about what was signed.
      throw faultOf(cause);
    }
  };
}

function saysNoKey(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys
  );
}
