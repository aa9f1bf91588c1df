/** Bytes of a string besides its characters, of an object, and of each of its fields, in V8. */
const TEXT_BYTES = 16
const OBJECT_BYTES = 40
const FIELD_BYTES = 8

/** Returns about how many bytes of memory a value of JSON takes. */
export function weigh(value: unknown): number {
  if (typeof value === 'string') return TEXT_BYTES + 2 * value.length
  if (typeof value !== 'object' || value === null) return 0
  let bytes = OBJECT_BYTES
  for (const field of Object.values(value)) bytes += FIELD_BYTES + weigh(field)
  return bytes
}
