import type { Identity } from "./identity.ts";
import type { WalletSessions } from "./sessions.ts";
import type { WalletStorage } from "./storage.ts";

/** What everything in the wallet works with; nothing here is specific to Node or to a browser. */
export interface WalletContext {
  readonly identity: Identity;
  readonly storage: WalletStorage;
  readonly fetch: typeof fetch;
  /** Whole Unix seconds. Asynchronous, because a demo takes its time from the service. */
  now(): Promise<number>;
  /** Bytes that nobody can predict. */
  readonly random: (length: number) => Uint8Array;
  /** Origins of the brokers on the wallet's list. */
  brokers(): Promise<readonly string[]>;
  readonly sessions: WalletSessions;
  /** Receives a line that a person should read although nothing was refused; absent if nobody reads it. */
  readonly tell?: (line: string) => void;
  /** Receives a line that says what a waiting person waits for. */
  readonly tellWait?: (line: string) => void;
  /** Hands a record of this media type over by NFC; absent if the device cannot. */
  readonly nfc?: (record: { mediaType: string; payload: string }) => Promise<void>;
  /** True for a page that may call only its brokers: answers to others then go through the first of them. */
  readonly relaysAnswers?: boolean;
}
