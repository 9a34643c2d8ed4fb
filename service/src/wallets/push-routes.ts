import { Type } from "../platform/http/schema.ts";
import { base64url } from "../platform/http/text-form.ts";
import type { FastifyReply } from "fastify";
import type { Ctx } from "../platform/context.ts";
import type { Http } from "../platform/http/http.ts";
import { bodyReasons, refusals } from "../platform/http/refusals.ts";
import { subscribePush, unsubscribePush } from "./push.ts";
import { pushKeyOf } from "./push-key.ts";
import { limitWallet } from "./wallet-limits.ts";
import { getWalletUser } from "./wallet-sessions.ts";

const tags = ["wallet"];
const endpointOf = (description: string) =>
  Type.String({ minLength: 1, maxLength: 2048, description });
const keyText = (description: string) => base64url({ minLength: 1, maxLength: 200, description });

const SubscriptionBody = Type.Object({
  endpoint: endpointOf("The address of the device at its push service, as the browser returns it."),
  keys: Type.Object(
    {
      p256dh: keyText("The device's public key: a point of P-256 in base64url."),
      auth: keyText("The secret that authenticates the service: 16 bytes in base64url."),
    },
    { description: "The keys, as the browser returns them." },
  ),
});

/** Routes by which devices subscribe to hints that something waits. */
export function pushRoutes(ctx: Ctx, scope: Http): void {
  const { publicKey } = pushKeyOf(ctx);
  scope.get(
    "/w/push/key",
    {
      schema: {
        response: {
          200: Type.Object(
            { key: Type.String({ description: "`applicationServerKey`, base64url." }) },
            { description: "The key with which a browser subscribes." },
          ),
        },
        tags,
        operationId: "getPushKey",
        summary: "Get the key of this service for push subscriptions",
      },
    },
    () => ({ key: publicKey }),
  );
  scope.post(
    "/w/push",
    {
      schema: {
        body: SubscriptionBody,
        response: {
          204: Type.Null({
            description: "Hints are sent to the device; they say only that something waits.",
          }),
          ...refusals(...bodyReasons, "wallet_session_required", "rate_limited"),
        },
        tags,
        operationId: "subscribeDevice",
        summary: "Send hints to a device when something waits",
      },
    },
    async (request, reply) => {
      const user = await getWalletUser(ctx, request.headers.authorization);
      await limitWallet(ctx, request, "push");
      await subscribePush(ctx, user, request.body);
      return (reply as FastifyReply).code(204).send();
    },
  );
  scope.delete(
    "/w/push",
    {
      schema: {
        querystring: Type.Object({}),
        body: Type.Object({
          endpoint: Type.Optional(
            endpointOf("The address of the device. Absent: all devices of this identity."),
          ),
        }),
        response: {
          204: Type.Null({ description: "No more hints are sent." }),
          ...refusals(...bodyReasons, "wallet_session_required"),
        },
        tags,
        operationId: "unsubscribeDevices",
        summary: "Stop hints to one device, or to all devices of this identity",
      },
    },
    async (request, reply) => {
      const user = await getWalletUser(ctx, request.headers.authorization);
      await unsubscribePush(ctx, user, request.body.endpoint);
      return (reply as FastifyReply).code(204).send();
    },
  );
}
