import { KisError } from '../../../common/errors.ts'

/**
 * Most characters that one node, or one item of a map, may read and create: sixteen times the limit of inputs or a
 * text, and about 50 ms of the event loop.
 */
const MAX_RENDERED = 4_194_304

/**
 * Limits the characters that rendering reads and creates: a short template may name a long value thousands of times.
 */
export class RenderBudget {
  #left = MAX_RENDERED

  /** @throws {KisError} `run_limit_exceeded`: nothing is left */
  spend(characters: number): void {
    this.#left -= characters
    if (this.#left < 0) throw new KisError('run_limit_exceeded', `A node reads and generates more than ${MAX_RENDERED} characters.`)
  }

  /**
   * Spends the length of a value as JSON. Stops counting when nothing is left.
   * @throws as `spend`
   */
  spendJson(value: unknown): void {
    this.spend(jsonLength(value, this.#left))
  }
}

/**
 * The length of a value as JSON, or more than `most` if it is longer. A value that occurs several times counts each
 * time.
 */
export function jsonLength(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length > most ? most + 1 : JSON.stringify(value).length
  if (typeof value !== 'object' || value === null) return String(value).length
  // One character for the opening bracket, and one after each part for a comma or the closing bracket.
  const isList = Array.isArray(value)
  let length = 1
  for (const name in value) {
    length += 1 + (isList ? 0 : JSON.stringify(name).length + 1)
    length += jsonLength((value as Readonly<Record<string, unknown>>)[name], most - length)
    if (length > most) return length
  }
  return length === 1 ? 2 : length
}
