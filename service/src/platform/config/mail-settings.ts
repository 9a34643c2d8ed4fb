import { setting } from "./setting.ts";

/**
 * Nothing may follow the port. A query would be options of the library, some of which switch off TLS or write messages
 * to standard output; and a password with an unencoded `#`, `/` or `?` can read as another server.
 */
function smtpUrl(value: string): string {
  const url = URL.parse(value);
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === "")
    throw new Error("must be an smtp:// or smtps:// address with a percent-encoded password");
  if (/[?#]/.test(value) || !/^\/?$/.test(url.pathname))
    throw new Error("must end after the port, and the password must be percent-encoded");
  if ((url.username === "") !== (url.password === ""))
    throw new Error("must have both a user and a password, or neither");
  return value;
}

/** One mailbox, as `a@b` or `Name <a@b>`: line breaks would let it inject headers. */
function mailbox(value: string): string {
  const [, address = value] = /^(?:[^<>\p{Cc}]* )?<([^<>]+)>$/u.exec(value) ?? [];
  if (value.length > 320 || !/^[^\s\p{Cc}<>@,;:"()\\]+@[^\s\p{Cc}<>@,;:"()\\]+$/u.test(address))
    throw new Error("must be a mailbox such as id@example.com or Example <id@example.com>");
  return value;
}

/** The settings of the messages that the service sends; part of `settings` in `config.ts`. */
export const mailSettings = {
  smtpUrl: setting({
    env: "SMTP_URL",
    unit: "URL",
    fallback: null,
    parse: smtpUrl,
    description:
      "Mail server, such as `smtps://user:password@smtp.example.com` (default port 465). `smtp://` (default port 587) is upgraded by STARTTLS, in `production` always. Unset: in `dev`, every message becomes a file in `DATA_DIR/mail`; in `production`, e-mail addresses cannot be verified.",
    secret: true,
  }),
  mailFrom: setting({
    env: "MAIL_FROM",
    unit: "mailbox",
    fallback: null,
    parse: mailbox,
    description: "Sender of the messages. Required with `SMTP_URL`.",
  }),
} as const;

/** Mail settings that are null unless given. */
export type OptionalMailSetting = "smtpUrl" | "mailFrom";

/** The fault in the choice, in any profile; null if there is none. */
export function faultOfMail(config: {
  readonly smtpUrl: string | null;
  readonly mailFrom: string | null;
}): string | null {
  return config.smtpUrl !== null && config.mailFrom === null
    ? "MAIL_FROM must be set if SMTP_URL is set"
    : null;
}
