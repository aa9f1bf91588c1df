import { RE2JS } from 're2js'

/**
 * Matches a schema's `pattern` in time linear in the text. A backtracking engine takes years for `^(a+)+$` on a hundred
 * characters.
 */
export class LinearPattern {
  readonly #source: string
  readonly #matcher: RE2JS

  /** @throws {Error} RE2 does not support the syntax */
  constructor(source: string) {
    this.#source = source
    try {
      this.#matcher = RE2JS.compile(RE2JS.translateRegExp(source))
    } catch (error) {
      const why = (error as Error).message.replace('error parsing regexp: ', '')
      throw new Error(
        `the pattern ${JSON.stringify(source)} has syntax that \`pattern\` does not know here (${why}); it is RE2's, without look-around and back references`,
        { cause: error },
      )
    }
  }

  test(text: string): boolean {
    return this.#matcher.matcher(text).find()
  }

  /** Ajv uses this text as the pattern's identity. */
  toString(): string {
    return this.#source
  }
}
