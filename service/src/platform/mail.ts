import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Transporter } from "nodemailer";
import type { Ctx } from "./context.ts";

/** A message to one person. Subject and text are ours; only the address was chosen by somebody else. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** Hands the message over. @throws when the server did not take it; it may be handed over again */
  send(message: Message): Promise<void>;
  close(): void;
}

const connectTimeoutMs = 10_000;
const silenceTimeoutMs = 20_000;

/**
 * The way out for messages: the configured server; without one, in `dev`, files of mode 0600 below `DATA_DIR/mail`;
 * in `production` null. The log names no address, and nothing of the content.
 */
export function createMailer(ctx: Pick<Ctx, "config" | "clock" | "random" | "log">): Mailer | null {
  const { smtpUrl, mailFrom, profile } = ctx.config;
  if (smtpUrl !== null && mailFrom !== null) return openSmtp(ctx, { url: smtpUrl, from: mailFrom });
  return profile === "dev" ? openCatcher(ctx) : null;
}

function openSmtp(ctx: Pick<Ctx, "config">, given: { url: string; from: string }): Mailer {
  // By the first message: most processes never send one.
  let opened: Promise<Transporter> | undefined;
  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import("nodemailer");
    return createTransport({
      url: given.url,
      requireTLS: ctx.config.profile === "production",
      connectionTimeout: connectTimeoutMs,
      greetingTimeout: connectTimeoutMs,
      socketTimeout: silenceTimeoutMs,
      // Nothing in a message may name a file or an address to be read into it.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  };
  return {
    async send({ to, subject, text }) {
      opened ??= open();
      const transport = await opened;
      // As an object the address is taken as it is, never as a list of several.
      await transport.sendMail({
        from: given.from,
        to: { name: "", address: to },
        subject,
        text,
        headers: { "auto-submitted": "auto-generated" },
      });
    },
    close: () => void opened?.then((transport) => transport.close()),
  };
}

function openCatcher(ctx: Pick<Ctx, "config" | "clock" | "random" | "log">): Mailer {
  const directory = join(ctx.config.dataDirectory, "mail");
  return {
    async send({ to, subject, text }) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const name = `${ctx.clock.nowMs()}-${ctx.random.bytes(4).toString("hex")}.eml`;
      const content = `To: ${to}\nSubject: ${subject}\n\n${text}\n`;
      await writeFile(join(directory, name), content, { mode: 0o600 });
      ctx.log.info({ directory: "mail", file: name }, "a message was caught");
    },
    close: () => undefined,
  };
}
