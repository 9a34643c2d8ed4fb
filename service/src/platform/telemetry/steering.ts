/** What JSON may hold as it is although it steers some terminals, breaks a line there or changes the reading direction. */
const steering = /[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** JSON that says the same to a program, and that a terminal can show whoever wrote the texts in it. */
export function escapeSteering(json: string): string {
  return json.replaceAll(
    steering,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
