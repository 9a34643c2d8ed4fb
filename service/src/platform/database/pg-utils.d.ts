declare module "pg/lib/utils.js" {
  /** A value as a parameter in PostgreSQL's text form; bytes are sent as they are. */
  export function prepareValue(value: unknown): string | Buffer | null;
}
