import { z } from 'zod'
import { SEALED } from './sealed-secret.ts'

/** Format of an archive. A program reads the formats up to this one. */
export const FORMAT = 1

/** Names of the first entry of an archive, and of the last. */
export const HEAD = 'archive.json'
export const MANIFEST = 'manifest.json'
/** Bytes of the first and of the last entry, each of which is read as a whole. */
export const MAX_DESCRIPTION_BYTES = 4 * 1024 * 1024

/** Bytes of JSON lines after which a part of records is written. One more record may add as much. */
export const PART_BYTES = 4 * 1024 * 1024
/** The largest part of records, in bytes: more than the largest record of a store plus `PART_BYTES`. */
export const MAX_PART_BYTES = 64 * 1024 * 1024
/**
 * Lines of a part: `PART_BYTES` by the bytes of the shortest record, an ID with its name. A record of two characters
 * takes a hundred bytes in memory.
 */
export const MAX_PART_LINES = PART_BYTES / 32

const MODEL = z.strictObject({ id: z.string().max(500), dimensions: z.int().min(1), engineModel: z.string().max(500) })
const ORGANIZATION_ID = z.string().regex(/^org_[0-9a-f]{32}$/)
/** The scope of an archive: a whole installation, or one organization. */
const SCOPE = z.discriminatedUnion('what', [
  z.strictObject({
    what: z.literal('installation'),
    id: z.string().max(100),
    secretFingerprint: z.string().regex(/^[0-9a-f]{1,64}$/),
    /** The version of each kind of record. Records of an older version are converted. */
    kinds: z.record(z.string().max(100), z.int().min(1)),
  }),
  z.strictObject({
    what: z.literal('organization'),
    id: ORGANIZATION_ID,
    name: z.string().max(1_000),
    /** Embedding models of the source installation. */
    models: z.array(MODEL).max(10_000),
  }),
])

const HEAD_SCHEMA = z.strictObject({
  what: z.literal('kis-archive'),
  format: z.literal(FORMAT),
  /** Identifies the archive, so that a repeated import recognizes what it has started. */
  id: z.string().regex(/^exp_[0-9a-f]{32}$/),
  scope: SCOPE,
  /** Version of the program that wrote the archive, as `kis version` prints it. */
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  api: z.string().max(100),
  schema: z.string().max(100),
  begunAt: z.iso.datetime(),
  /** Sealed with a passphrase: the secret of an installation, or the key of an organization's secrets; null: none. */
  secret: SEALED.nullable(),
})

const MANIFEST_SCHEMA = z.strictObject({
  /** The archive shows the data between these two times; they are equal if it shows one moment. */
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  /** The number of records of each kind. */
  records: z.record(z.string().max(100), z.int().min(0)),
  /** The number of entries with bytes, and the sum of their bytes. */
  files: z.strictObject({ count: z.int().min(0), bytes: z.int().min(0) }),
  /** The number of records that were not exported, by their description. */
  left: z.record(z.string().max(200), z.int().min(0)),
  /** SHA-256 of the names, sizes and bytes of all entries before this one. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

export type Head = z.output<typeof HEAD_SCHEMA>
export type InstallationScope = Extract<Head['scope'], { readonly what: 'installation' }>
export type OrganizationScope = Extract<Head['scope'], { readonly what: 'organization' }>
export type Manifest = z.output<typeof MANIFEST_SCHEMA>

/** @throws {Error} its message is meant to follow the archive's name */
export function parseHead(text: string, version: string): Head {
  const value = parse(text, HEAD)
  const { what, format, version: writtenBy } = (value ?? {}) as { readonly [field: string]: unknown }
  if (what !== 'kis-archive') throw new Error('is not an archive of `kis export`')
  if (typeof writtenBy === 'string' && isNewer(writtenBy, version))
    throw new Error(`was created by version ${writtenBy}, and this is ${version}: import it with that version or a newer one`)
  if (typeof format === 'number' && format > FORMAT)
    throw new Error(`has format ${format}, and this program reads formats up to ${FORMAT}: use a newer one`)
  return checked(HEAD_SCHEMA, value, HEAD)
}

/** @throws {Error} its message is meant to follow the archive's name */
export function parseManifest(text: string): Manifest {
  return checked(MANIFEST_SCHEMA, parse(text, MANIFEST), MANIFEST)
}

/** @throws {Error} the text is no ID of an organization */
export function requireOrganizationId(text: string): string {
  if (ORGANIZATION_ID.safeParse(text).success) return text
  throw new Error(`${JSON.stringify(text)} is not the id of an organization: org_ and 32 hexadecimal digits.`)
}

/** Returns a text of an archive without terminal control characters. */
export function visible(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (hidden) => `\\u{${hidden.codePointAt(0)!.toString(16)}}`)
}

/** Compares versions: three numbers, which a suffix may follow. */
function isNewer(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => text.split(/[.-]/).slice(0, 3).map(Number))
  const index = a!.findIndex((number, i) => number !== b![i])
  return index >= 0 && a![index]! > b![index]!
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`is corrupted: ${name} is not JSON`)
  }
}

function checked<T>(schema: z.ZodType<T>, value: unknown, name: string): T {
  const { data, error } = schema.safeParse(value)
  if (error) throw new Error(`is corrupted: ${name} is invalid: ${z.prettifyError(error).split('\n')[0]}`)
  return data as T
}
