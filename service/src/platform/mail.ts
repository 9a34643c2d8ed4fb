import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { domainToASCII } from "node:url";
import type { Transporter } from "nodemailer";
import type { Ctx } from "./context.ts";

/** A message to one person. Subject and text are ours; only the address was chosen by somebody else. */
export interface Message {
  /** The same at every attempt, so a mailbox that gets the message twice can show it once; not secret. */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

export interface Mailer {
  /** Hands the message over. @throws if the server did not accept it; then it may be handed over again */
  send(message: Message): Promise<void>;
  close(): void;
}

/** For the connection, the greeting and TLS: a server that asks DNS in vain about us greets after 20 s or so. */
const connectTimeoutMs = 30_000;
/** Exchange may take 30 s to answer a whole message; giving up sooner would send it twice. */
const silenceTimeoutMs = 45_000;
/** For everything together: a server that keeps sending a little is never silent. */
const messageTimeoutMs = 90_000;

/**
 * How messages are sent: the configured server; without one, in `dev`, files of mode 0600 below `DATA_DIR/mail`; in
 * `production` null. The log names no address, and nothing of the content.
 */
export function createMailer(ctx: Pick<Ctx, "config" | "clock" | "random" | "log">): Mailer | null {
  const { smtpUrl, mailFrom, profile } = ctx.config;
  if (smtpUrl !== null && mailFrom !== null) return openSmtp(ctx, { url: smtpUrl, from: mailFrom });
  return profile === "dev" ? openCatcher(ctx) : null;
}

function openSmtp(ctx: Pick<Ctx, "config">, given: { url: string; from: string }): Mailer {
  // Opened by the first message, since most processes never send one.
  let opened: Transporter | undefined;
  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import("nodemailer");
    return createTransport({
      url: given.url,
      name: clientNameOf(ctx.config.baseUrl),
      requireTLS: ctx.config.profile === "production",
      connectionTimeout: connectTimeoutMs,
      greetingTimeout: connectTimeoutMs,
      socketTimeout: silenceTimeoutMs,
      // A message must not be able to include a file or the content of an address.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  };
  const from = readMailbox(given.from);
  const domain = domainToASCII(from.address.slice(from.address.lastIndexOf("@") + 1));
  return {
    async send({ id, to, subject, text }) {
      const transport = (opened ??= await open());
      // As objects, addresses are used as they are and never parsed as a list or a group of several.
      await transport.sendMail({
        from,
        to: { name: "", address: to },
        subject,
        text,
        messageId: `<${id}@${domain}>`,
        headers: { "auto-submitted": "auto-generated" },
        signal: AbortSignal.timeout(messageTimeoutMs),
      });
    },
    close: () => opened?.close(),
  };
}

/**
 * The name by which we greet the server; undefined for the machine's. A container's is not a host name, and some
 * servers, such as Google's relay, reject clients that do not name one.
 */
function clientNameOf(baseUrl: string): string | undefined {
  const { hostname } = new URL(baseUrl);
  return /\.[a-z][a-z0-9-]*$/.test(hostname) ? hostname : undefined;
}

/** Reads `a@b`, `Name <a@b>` or `"Name" <a@b>`, as `MAIL_FROM` was checked to be. */
function readMailbox(text: string): { name: string; address: string } {
  const [, name = "", address = text] = /^(.*?) ?<(.*)>$/.exec(text) ?? [];
  return { name: name.replace(/^"(.*)"$/, "$1"), address };
}

function openCatcher(ctx: Pick<Ctx, "config" | "clock" | "random" | "log">): Mailer {
  const directory = join(ctx.config.dataDirectory, "mail");
  return {
    async send({ to, subject, text }) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const name = `${ctx.clock.nowMs()}-${ctx.random.bytes(4).toString("hex")}.eml`;
      const content = `To: ${to}\nSubject: ${subject}\n\n${text}\n`;
      await writeFile(join(directory, name), content, { mode: 0o600 });
      ctx.log.info(
        { directory: "mail", file: name },
        "an e-mail was written to a file instead of being sent",
      );
    },
    close: () => undefined,
  };
}
