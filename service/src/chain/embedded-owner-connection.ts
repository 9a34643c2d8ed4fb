import type { Queryable } from "../platform/database/db.ts";
import { findPath } from "./embedded-store.ts";
import { type Ipc, openIpc } from "./ipc.ts";
import { NodeAway } from "./node.ts";

/** For how long a connection that was replaced is kept to answer calls that are under way. */
const retireMs = 5_000;

/** The connection of a process that does not own the embedded chain to the node of the one that does. */
export class OwnerConnection implements Disposable {
  readonly #db: Queryable;
  #open: { readonly path: string; readonly ipc: Ipc } | null = null;
  #renewals = 0;
  #isClosed = false;

  constructor(db: Queryable) {
    this.#db = db;
  }

  /** The open connection, or a new one. @throws {NodeAway}, also for a call that the end of this process has overtaken */
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
      // Another call was quicker, the node was replaced meanwhile, or nobody would close this one any more.
      ipc.close();
    }
  }

  /** Whether it is open to the node at this path. */
  leadsTo(path: string | null): boolean {
    return this.#open?.path === path;
  }

  /** From now on the owner's present node is asked. Calls under way stay with the node that they were made to. */
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
