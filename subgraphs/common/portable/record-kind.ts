import { z } from 'zod'

/** The checks of a record's exported fields. The fields `Stays` are not exported. */
export type Shape<Stored, Stays extends keyof Stored> = { readonly [Field in Exclude<keyof Stored, Stays>]-?: z.ZodType }

/** One kind of record in the archive of an organization. */
export interface RecordKind<Record> {
  /** Part of the archive's format: `knowledge/documents`. */
  readonly name: string
  /** Returns one line of JSON with the exported fields. */
  toLine(record: object): string
  /** @throws {Error} the value is not such a record; the message names the difference */
  parse(value: unknown): Record
}

/**
 * Describes the export of a stored record. A field of `Stored` that is neither described nor named in `Stays` is a
 * compiler error, so that each new field needs a decision.
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

/** Records that only people read: an import skips them. */
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
