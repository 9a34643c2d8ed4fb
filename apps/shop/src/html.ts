/** Markup that is safe to send. Only `html` makes it. */
export interface Html {
  readonly markup: string;
}

/** Writes HTML: every value is escaped, for text and for attributes in double quotes, unless it is Html already. */
export function html(parts: TemplateStringsArray, ...values: (string | Html | Html[])[]): Html {
  const markup = parts.map((part, at) => part + write(values[at] ?? "")).join("");
  return { markup };
}

function write(value: string | Html | Html[]): string {
  if (Array.isArray(value)) return value.map((each) => each.markup).join("");
  return typeof value === "string"
    ? value.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
    : value.markup;
}
