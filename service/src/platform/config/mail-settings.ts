import { setting } from "./setting.ts";

function smtpUrl(value: string): string {
  const url = URL.parse(value);
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === "")
    throw new Error("must be an smtp:// or smtps:// address");
  return value;
}

/** One mailbox, as `a@b` or `Name <a@b>`: line breaks would let it inject headers. */
function mailbox(value: string): string {
  if (value.length > 320 || !/^(?:[^<>\p{Cc}]* )?<?[^\s<>@,;]+@[^\s<>@,;]+>?$/u.test(value))
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
      "The server that takes messages, such as `smtps://user:password@smtp.example.com`; `smtp://` is upgraded by STARTTLS, in `production` always. Unset: in `dev` every message becomes a file below `DATA_DIR/mail`; in `production` the verification of e-mail addresses is switched off.",
    secret: true,
  }),
  mailFrom: setting({
    env: "MAIL_FROM",
    unit: "mailbox",
    fallback: null,
    parse: mailbox,
    description: "Sender of these messages; needed with `SMTP_URL`.",
  }),
} as const;

/** Mail settings that are null unless given. */
export type OptionalMailSetting = "smtpUrl" | "mailFrom";

/** What is wrong with the choice, in any profile; null if nothing is. */
export function faultOfMail(config: {
  readonly smtpUrl: string | null;
  readonly mailFrom: string | null;
}): string | null {
  return config.smtpUrl !== null && config.mailFrom === null
    ? "MAIL_FROM must be set where SMTP_URL is set"
    : null;
}
