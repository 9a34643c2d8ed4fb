/** The 16 bytes of a family's UUID: half as long in a token as its text. */
export function bytesOfFamilyId(id: string): Buffer {
  return Buffer.from(id.replaceAll("-", ""), "hex");
}

/** The UUID of a family, in the spelling of the database. */
export function familyIdOfBytes(bytes: Buffer): string {
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
