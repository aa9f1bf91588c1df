import { refuse } from './check.ts'

/**
 * Invisible characters, and characters that make a text read as another: controls (C0 and C1), separators of lines and
 * paragraphs, and the embeddings, overrides and isolates of text direction. With U+202E, `photo_gpj.exe` reads as
 * `photo_exe.jpg`. The marks U+061C, U+200E and U+200F and the joiners U+200C and U+200D are not included: Arabic and
 * Persian names need them.
 */
const HIDDEN = /[\p{Cc}\u2028-\u202e\u2066-\u206f]+/gu
const LINE_CHARACTERS = /[\t\n\r]/g

/**
 * Checks a text of one line, such as a name.
 * @throws {KisError} `invalid_request`: the text has such characters
 */
export function checkPlain(text: string, param: string): void {
  if (toPlain(text) !== text)
    refuse(
      'invalid_request',
      param,
      'The text has a control character or one that changes the direction of text (U+2028 to U+202E, U+2066 to U+206F). Remove it.',
    )
}

/**
 * Checks a text of several lines.
 * @throws {KisError} as `checkPlain`
 */
export function checkPlainLines(text: string, param: string): void {
  checkPlain(text.replaceAll(LINE_CHARACTERS, ''), param)
}

/** Returns the text with a space in place of such characters. For names that no caller has chosen. */
export function toPlain(text: string): string {
  return text.replaceAll(HIDDEN, ' ')
}
