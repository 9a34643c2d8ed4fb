/** What a deep link asks for. A data transfer has no word of its own in the path. */
export type Action = "data-transfer" | "login" | "td" | "request" | "access" | "sign" | "tx";
