import { accountsSealedColumns } from "../accounts/index.ts";
import { chainSealedColumns } from "../chain/index.ts";
import { credentialSealedColumns } from "../credentials/index.ts";
import {
  attestationKeyPurpose,
  kybSealedColumns,
  listAttestationKeys,
  revokeAttestationKey,
  rotateAttestationKey,
} from "../kyb/index.ts";
import { kycSealedColumns } from "../kyc/index.ts";
import {
  keyPurposes,
  listSigningKeys,
  revokeSigningKey,
  rotateSigningKey,
  signingKeyColumn,
} from "../login/index.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { platformSealedColumns, rewrapAll } from "../platform/cryptography/sealed-columns.ts";
import { walletSealedColumns } from "../wallets/index.ts";
import { webhookSealedColumns } from "../webhooks/index.ts";
import { actor, choiceOf, inContext, type Verb } from "./verb.ts";

/**
 * All columns that are sealed under the master key; a slice that seals adds its own here. A start opens a value of the
 * first and of the last column: so during a rewrap, a process that has only the old or only the new key is refused.
 */
const sealedColumns: readonly SealedColumn[] = [
  signingKeyColumn,
  ...chainSealedColumns,
  ...credentialSealedColumns,
  ...accountsSealedColumns,
  ...kycSealedColumns,
  ...kybSealedColumns,
  ...walletSealedColumns,
  ...webhookSealedColumns,
  ...platformSealedColumns,
];

const rewrapBatch = 500;
const purposes = [...keyPurposes, attestationKeyPurpose] as const;

export const keyVerbs: readonly Verb[] = [
  {
    name: "key list",
    summary: "List the keys that sign tokens, requests to wallets, and attestations.",
    notes:
      "Keys with the status `next` are already published; what `retired` keys signed may still be valid.",
    example: "key list",
    run: inContext(async (ctx) => [
      ...(await listAttestationKeys(ctx)),
      ...(await listSigningKeys(ctx)),
    ]),
  },
  {
    name: "key rotate",
    summary: "Replace a signing key with its published successor now.",
    notes:
      "This happens automatically when a key's lifetime ends. What the old key signed stays valid. Wait five minutes before you rotate the same purpose again: until then, verifiers may not know the new successor. If the result of a call was lost, `key list` shows whether the key was rotated.",
    parameters: [
      { name: "purpose", description: `What the key signs: one of ${purposes.join(", ")}.` },
    ],
    example: "key rotate login-rs256",
    run: async (shell, input) => {
      const purpose = choiceOf("purpose", input.text("purpose"), purposes);
      return shell.withContext(async (ctx) => ({
        purpose,
        current:
          purpose === attestationKeyPurpose
            ? await rotateAttestationKey(ctx, actor)
            : await rotateSigningKey(ctx, purpose, actor),
      }));
    },
  },
  {
    name: "key revoke",
    summary: "Revoke a stolen signing key immediately.",
    notes:
      "The service no longer accepts what the key signed; others learn of it from the key set. The key's successor takes over.",
    parameters: [{ name: "kid", description: "The key's id, as `key list` prints it." }],
    example: "key revoke pU6Qm3b1yWkz0aXv",
    run: inContext(async (ctx, input) => {
      const kid = input.text("kid");
      const attesting = await listAttestationKeys(ctx);
      const isAttesting = attesting.some((key) => key.kid === kid);
      await (isAttesting ? revokeAttestationKey : revokeSigningKey)(ctx, kid, actor);
      return { revoked: kid };
    }),
  },
  {
    name: "key rewrap",
    summary: "Re-encrypt everything sealed in the database under the newest master key.",
    notes:
      "To change the master key: (1) add the new key after the old one in MASTER_KEY and restart every process, so that each can open what the others will seal; (2) put the new key first and restart every process; (3) run this verb; (4) remove the old key.",
    example: "key rewrap",
    run: async (shell) =>
      shell.withContext(async (ctx) => {
        const done = await rewrapAll(ctx, sealedColumns, {
          batch: rewrapBatch,
          onProgress: ({ table, column, checked }) =>
            shell.progress(`${checked} values of ${table}.${column} are checked`),
        });
        await ctx.db.transaction(async (tx) =>
          ctx.audit.record(tx, { actor, action: "master-key.rewrap", subject: "installation" }),
        );
        return done;
      }),
  },
];
