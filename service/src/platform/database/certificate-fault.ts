/** What Node finds wrong with a certificate. */
const certificateCodes = /^(?:CERT_|SELF_SIGNED_|DEPTH_ZERO_SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/;
/** What the driver says of a server that has none. */
const noCertificate = "The server does not support SSL connections";

/** Whether a connection was not made because the server has no certificate, or none that is trusted. */
export function isCertificateFault(error: Error): boolean {
  const { code = "" } = error as NodeJS.ErrnoException;
  return certificateCodes.test(code) || error.message === noCertificate;
}
