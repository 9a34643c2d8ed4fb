import type { Queryable } from "../platform/database/db.ts";
import { findPath } from "./embedded-store.ts";
import { type Ipc, openIpc } from "./ipc.ts";
import { NodeAway } from "./node.ts";

/** How long a replaced connection is kept for calls under way. */
const retireMs = 5_000;

/** In a process that does not own the embedded chain: its connection to the node of the owner. */
export class OwnerConnection implements Disposable {
  readonly #db: Queryable;
  #open: { readonly path: string; readonly ipc: Ipc } | null = null;
  #renewals = 0;
  #isClosed = false;

  constructor(db: Queryable) {
    this.#db = db;
  }

  /** The open connection, or a new one. @throws {NodeAway}, also when this process is closing */
  async ipc(): Promise<Ipc> {
    for (;;) {
      if (this.#isClosed) throw new NodeAway("this process is about to end");
      if (this.#open !== null) return this.#open.ipc;
      const renewals = this.#renewals;
      const path = await findPath(this.#db);
      if (path === null) throw new NodeAway("no process runs the embedded chain yet");
      const ipc = await openIpc(path);
      if (this.#open === null && this.#renewals === renewals && !this.#isClosed) {
        this.#open = { path, ipc };
        void this.#forgetWhenClosed(ipc);
        return ipc;
      }
      // Another call has opened one first, the node was replaced meanwhile, or this object was disposed.
      ipc.close();
    }
  }

  /** Whether it is open to the node at this path. */
  leadsTo(path: string | null): boolean {
    return this.#open?.path === path;
  }

  /** Lets the next call connect to the owner's present node. Calls under way keep their connection. */
  renew(): void {
    const before = this.#open?.ipc;
    this.#open = null;
    this.#renewals += 1;
    if (before !== undefined) setTimeout(() => before.close(), retireMs).unref();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#open?.ipc.close();
  }

  async #forgetWhenClosed(ipc: Ipc): Promise<void> {
    await ipc.closed;
    if (this.#open?.ipc === ipc) this.#open = null;
  }
}
