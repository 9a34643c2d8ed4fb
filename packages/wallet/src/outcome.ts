/** What came of an approval or a refusal. */
export type Outcome =
  | {
      readonly kind: "delivered";
      /** HTTP status of the other side; it took the answer if this is 2xx. */
      readonly status: number;
      /** The result or refusal that was sent, without secret and digits. */
      readonly result: Readonly<Record<string, unknown>>;
      /** What the other side said: the members of its JSON object, none for anything else. */
      readonly answer: Readonly<Record<string, unknown>>;
      /** Present when the other side did not take it: why, in one line. */
      readonly refusal?: string;
    }
  /** The address to open in the browser, or in the app that asked. */
  | { readonly kind: "opened"; readonly url: string }
  /** The answer as text, to be shown as a QR code or as it is. */
  | { readonly kind: "shown"; readonly payload: string }
  /** The answer lies sealed in a mailbox: whoever gets this link first picks it up. */
  | { readonly kind: "left"; readonly link: string; readonly expiresAt: number }
  /** The answer went over by NFC. */
  | { readonly kind: "handed-over" }
  /** Nothing was signed: the approval takes the two digits that the page shows now. */
  | { readonly kind: "code-required" };
