/** The outcome of an approval or a refusal. */
export type Outcome =
  | {
      readonly kind: "delivered";
      /** HTTP status of the other side; 2xx means that it accepted the answer. */
      readonly status: number;
      /** The result or refusal that was sent, without the secret and the digits. */
      readonly result: Readonly<Record<string, unknown>>;
      /** What the other side answered: the members of its JSON object, or none if it is not one. */
      readonly answer: Readonly<Record<string, unknown>>;
      /** Present if the other side did not accept it: why, in one line. */
      readonly refusal?: string;
    }
  /** The address to open in the browser, or in the app that asked. */
  | { readonly kind: "opened"; readonly url: string }
  /** The answer as text, to be shown as a QR code or as it is. */
  | { readonly kind: "shown"; readonly payload: string }
  /** The answer is sealed in a mailbox: the first person who opens this link picks it up. */
  | { readonly kind: "left"; readonly link: string; readonly expiresAt: number }
  /** The answer was handed over by NFC. */
  | { readonly kind: "handed-over" }
  /** Nothing was signed: the approval needs the two digits that the page shows now. */
  | { readonly kind: "code-required" };
