/** A field of a record: its name, such as `address.city`, and its value. */
export type Field = readonly [name: string, value: string]

/** Formats fields as `name: value` lines. A field without a name is a line with its value. */
export function toLines(fields: readonly Field[]): string {
  return fields
    .filter(([, value]) => value.trim() !== '')
    .map(([name, value]) => (name === '' ? value : `${name}: ${value}`))
    .join('\n')
}
