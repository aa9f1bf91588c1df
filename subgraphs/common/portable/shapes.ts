import { z } from 'zod'
import { SCOPES } from '../identity/principal.ts'

/** Checks of fields that records of several subgraphs share. */

/** MongoDB's limit of a document. No stored record is larger. */
const MAX_CHARACTERS = 16 * 1024 * 1024

export const text = (most = MAX_CHARACTERS) => z.string().max(most)

/** An id of this service: see `ids.ts`. */
export const id = (prefix: string) => z.string().refine((value) => isId(value, prefix), `is not an id of ${prefix}_`)

export const date = () => z.iso.datetime().transform((written) => new Date(written))

export const count = () => z.int().min(0)

/** Nano-USD or another sum, as decimal digits. */
export const digits = () => z.string().regex(/^-?\d{1,40}$/)

export const sha256 = () => z.string().regex(/^[0-9a-f]{64}$/)

/** A JSON text, stored unchanged. */
export const json = (schema: z.ZodType = z.unknown()) =>
  text().refine((value) => isJson(value, schema), 'is not the JSON that belongs here')

/** Scopes of an imported key. Only the installation itself creates operators, so `operator` is not allowed. */
export const scopes = () => z.array(z.enum(SCOPES.filter((scope) => scope !== 'operator'))).max(SCOPES.length)

/** An object with at most `most` fields of any name. */
export const named = (value: z.ZodType, most: number) =>
  z.record(text(256), value).refine((record) => Object.keys(record).length <= most, `has more than ${most} members`)

export const failure = () => z.strictObject({ code: text(100), message: text(10_000) })

function isJson(value: string, schema: z.ZodType): boolean {
  try {
    return schema.safeParse(JSON.parse(value)).success
  } catch {
    return false
  }
}

function isId(value: string, prefix: string): boolean {
  return value.startsWith(`${prefix}_`) && /^[0-9a-f]{32}$/.test(value.slice(prefix.length + 1))
}
