export const KINDS = ['text', 'number', 'boolean'] as const

/** A metadata field of a document in a form. */
export interface MetadataRow {
  readonly key: number
  readonly name: string
  readonly kind: (typeof KINDS)[number]
  readonly value: string
}

export const MAX_FIELDS = 32
const NAME = /^[\p{L}_][\p{L}\p{M}\p{N}_]{0,63}$/u

export function toRows(metadata: unknown): readonly MetadataRow[] {
  if (typeof metadata !== 'object' || metadata === null) return []
  return Object.entries(metadata).map(([name, value], key) => ({
    key,
    name,
    kind: typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : 'text',
    value: String(value),
  }))
}

type RowProblem = 'name' | 'twice' | 'number'

/** Returns the problem of a row; null: none. */
export function problemOf(row: MetadataRow, rows: readonly MetadataRow[]): RowProblem | null {
  if (!NAME.test(row.name.trim())) return 'name'
  if (rows.some(({ key, name }) => key !== row.key && name.trim() === row.name.trim())) return 'twice'
  if (row.kind === 'number' && !(/^-?\d+$/.test(row.value.trim()) && Number.isSafeInteger(Number(row.value)))) return 'number'
  return null
}

/** Returns the metadata as the service accepts it. The rows must have no problem. */
export function toMetadata(rows: readonly MetadataRow[]): Readonly<Record<string, string | number | boolean>> {
  return Object.fromEntries(
    rows.map(({ name, kind, value }) => [name.trim(), kind === 'number' ? Number(value) : kind === 'boolean' ? value === 'true' : value]),
  )
}
