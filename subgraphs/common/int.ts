/** The greatest number of GraphQL's 32-bit `Int`. */
export const MAX_INT = 2 ** 31 - 1

/** Returns the number, or the greatest `Int` in place of a greater one. */
export function toInt(value: number): number {
  return Math.min(value, MAX_INT)
}
