/**
 * Reads a text of the address. An address that a person wrote may have only digits, which the router reads as a number.
 */
export function readText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Reads one of the allowed values of the address. */
export function readOne<Value extends string>(values: readonly Value[], value: unknown): Value | undefined {
  return values.find((each) => each === value)
}
