/** Converts to JSON, with costs as decimal strings, because JSON has no big integers. `fromJson` reverses it. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (key, field) => (key === 'cost' && typeof field === 'bigint' ? String(field) : field))
}

export function fromJson<T>(text: string): T {
  return JSON.parse(text, (key, field) => (key === 'cost' && typeof field === 'string' ? BigInt(field) : field)) as T
}
