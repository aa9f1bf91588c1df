import { z } from 'zod'

/** The checks of the fields of a record that travel. The fields `Stays` stay behind. */
export type Shape<Stored, Stays extends keyof Stored> = { readonly [Field in Exclude<keyof Stored, Stays>]-?: z.ZodType }

/** One kind of record in the archive of an organization. */
export interface RecordKind<Record> {
  /** Part of the archive's format: `knowledge/documents`. */
  readonly name: string
  /** One line of JSON, of the fields that travel. */
  toLine(record: object): string
  /** @throws {Error} the value is not such a record; the message says where it differs */
  parse(value: unknown): Record
}

/**
 * Describes how a stored record travels. A field of `Stored` that is neither described nor named in `Stays` is an error of
 * the compiler, so that a new field is decided on.
 */
export function recordKind<Stored, Stays extends keyof Stored>(name: string, shape: Shape<Stored, Stays>): RecordKind<Omit<Stored, Stays>> {
  const schema = z.strictObject(shape as z.ZodRawShape)
  const fields = Object.keys(shape)
  return {
    name,
    toLine(record) {
      const values = record as { readonly [field: string]: unknown }
      return JSON.stringify(
        Object.fromEntries(fields.filter((field) => values[field] !== undefined).map((field) => [field, values[field]])),
      )
    },
    parse(value) {
      const { data, error } = schema.safeParse(value)
      if (error) throw new Error(z.prettifyError(error).split('\n').slice(0, 2).join(' '))
      return data as unknown as Omit<Stored, Stays>
    },
  }
}

/** Records that are only for people to read: an import passes over them. */
export function reportKind(name: string): RecordKind<object> {
  const schema = z.looseObject({})
  return {
    name,
    toLine: (record) => JSON.stringify(record),
    parse(value) {
      const { data, error } = schema.safeParse(value)
      if (error) throw new Error('is not an object')
      return data
    },
  }
}
