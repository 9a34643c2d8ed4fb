// oidc-provider brings no types; this is the part of its interface that is used here.
declare module "oidc-provider" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

  export interface AdapterPayload {
    readonly grantId?: string;
    readonly uid?: string;
    readonly userCode?: string;
    readonly consumed?: unknown;
    readonly [member: string]: unknown;
  }

  export interface Adapter {
    upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void>;
    find(id: string): Promise<AdapterPayload | undefined>;
    findByUid(uid: string): Promise<AdapterPayload | undefined>;
    findByUserCode(userCode: string): Promise<AdapterPayload | undefined>;
    consume(id: string): Promise<void>;
    destroy(id: string): Promise<void>;
    revokeByGrantId(grantId: string): Promise<void>;
  }

  export interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  export interface OidcContext {
    readonly path: string;
    readonly method: string;
    readonly req: IncomingMessage;
    readonly res: ServerResponse;
    body: unknown;
    respond?: boolean;
    set(headers: Record<string, string>): void;
    readonly oidc: {
      readonly client: { readonly clientId: string };
      readonly session: {
        readonly accountId: string;
        grantIdFor(clientId: string): string | undefined;
      };
      readonly result?: { readonly consent?: { readonly grantId?: string } };
      readonly params: Readonly<Record<string, string | undefined>>;
    };
  }

  export interface InteractionDetails {
    readonly uid: string;
    readonly params: Readonly<Record<string, string | undefined>>;
    readonly prompt: { readonly name: string };
  }

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    readonly Grant: (new (given: { accountId: string; clientId: string }) => Grant) & {
      find(id: string): Promise<Grant | undefined>;
    };
    readonly Client: { find(id: string): Promise<{ readonly clientName?: string } | undefined> };
    use(middleware: (ctx: OidcContext, next: () => Promise<void>) => Promise<void>): void;
    callback(): RequestListener;
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<InteractionDetails>;
    interactionFinished(
      req: IncomingMessage,
      res: ServerResponse,
      result: Record<string, unknown>,
      options?: { mergeWithLastSubmission: boolean },
    ): Promise<void>;
    on(event: string, listener: (ctx: unknown, error: Error) => void): void;
  }
}
