/** A field of a record, `address.city`, and what it says. */
export type Field = readonly [name: string, value: string]

/** Fields as lines of `name: value`; a value without a name stands for itself. */
export function linesOf(fields: readonly Field[]): string {
  return fields
    .filter(([, value]) => value.trim() !== '')
    .map(([name, value]) => (name === '' ? value : `${name}: ${value}`))
    .join('\n')
}
