/**
 * Characters that JSON may hold unescaped, but that steer some terminals, break a line there or change the reading
 * direction.
 */
const steering = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Escapes them: programs read the same JSON, and a terminal can show it, whoever wrote its texts. */
export function escapeSteering(json: string): string {
  return json.replaceAll(
    steering,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
