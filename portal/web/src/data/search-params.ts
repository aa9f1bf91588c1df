/** A text of the address. An address that a person wrote may have digits alone, which the router reads as a number. */
export function readText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** One of the values that the address may have here. */
export function readOne<Value extends string>(values: readonly Value[], value: unknown): Value | undefined {
  return values.find((each) => each === value)
}
