import { createHash } from 'node:crypto'
import { z } from 'zod'
import { SEALED } from './sealed-secret.ts'

/** Of the archive's format. A program reads the formats up to this one. */
export const FORMAT = 1
/**
 * The size of the pieces of a file, in bytes. SQLite changes pages in place, so most pieces are the same in the next
 * backup. Smaller pieces save more, and make the list of them longer: 70 bytes for each.
 */
export const PIECE_BYTES = 1024 * 1024

const DIGEST = z.string().regex(/^[0-9a-f]{64}$/)
/** Names of this program's files only: an archive cannot name a path. */
const FILE_NAME = z.enum(['billing.sqlite', 'inference.sqlite', 'knowledge.sqlite', 'blobs.sqlite', 'index.sqlite'])

const FILE = z
  .strictObject({
    name: FILE_NAME,
    bytes: z.int().min(1),
    /** SQLite's `user_version`. */
    schemaVersion: z.int().min(0),
    /** SHA-256 of each piece, in order. All but the last have `PIECE_BYTES` bytes. */
    pieces: z.array(DIGEST),
  })
  .refine(({ bytes, pieces }) => pieces.length === Math.ceil(bytes / PIECE_BYTES), 'has another size than its pieces')

const MANIFEST = z.strictObject({
  format: z.literal(FORMAT),
  id: z.string().regex(/^bak_[A-Za-z0-9_-]{1,60}$/),
  /** The moment that all files show. */
  madeAt: z.iso.datetime(),
  /** Of the program that made it, as `kis version` says. */
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  api: z.string(),
  schema: z.string(),
  /** Null: the files come from version 0.1.0, which noted none. */
  installation: z.strictObject({ id: z.string(), secretFingerprint: z.string() }).nullable(),
  /** The backup that has the pieces which this one lacks; null: this one has them all. */
  since: z.strictObject({ id: z.string(), name: z.string().regex(/^[^/\\\0]{1,255}$/) }).nullable(),
  files: z
    .array(FILE)
    .min(1)
    .refine((files) => new Set(files.map(({ name }) => name)).size === files.length, 'names a file twice'),
  secret: SEALED.nullable(),
})

/** What an archive holds. It is the archive's last entry, so an archive with a manifest is complete. */
export type Manifest = z.output<typeof MANIFEST>

/** @throws {Error} the text is not a manifest that this program can read; the message follows the archive's name */
export function parseManifest(text: string, version: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('has a manifest that is not JSON, so it is damaged')
  }
  const { format, version: maker } = (value ?? {}) as { readonly format?: unknown; readonly version?: unknown }
  if (typeof maker === 'string' && isNewer(maker, version))
    throw new Error(`was made by version ${maker}, and this is ${version}: restore it with that version or a newer one`)
  if (typeof format === 'number' && format > FORMAT)
    throw new Error(`has format ${format}, and this program reads formats up to ${FORMAT}: use a newer one`)
  const { data, error } = MANIFEST.safeParse(value)
  if (error) throw new Error(`has a manifest that does not fit: ${z.prettifyError(error).split('\n')[0]}`)
  return data
}

export function isNewer(version: string, own: string): boolean {
  const [theirs, ours] = [version, own].map((text) => text.split(/[.+-]/, 3).map(Number))
  const at = theirs!.findIndex((part, place) => part !== ours![place])
  return at >= 0 && theirs![at]! > (ours![at] ?? 0)
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
