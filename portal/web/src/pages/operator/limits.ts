import { toLatinDigits } from '../../parts/typed-number.ts'

export const LIMITS = [
  'storageBytes',
  'vectors',
  'maxFileBytes',
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrency',
  'ocrPages',
] as const
export type Limit = (typeof LIMITS)[number]
type Limits = Readonly<Record<Limit, number | null>>
/** Limits as they are typed. Empty: that of the plan. */
type Typed = Readonly<Record<Limit, string>>

const BYTES_PER_MEBIBYTE = 1024 ** 2
/** Counts are `Int`s of the schema, and so is the size of one file. */
const MAX_COUNT = 2 ** 31 - 1

export function isBytes(limit: Limit): boolean {
  return limit === 'storageBytes' || limit === 'maxFileBytes'
}

export function typedOf(limits: Limits): Typed {
  const typed = (limit: Limit) => {
    const value = limits[limit]
    return value === null ? '' : String(isBytes(limit) ? value / BYTES_PER_MEBIBYTE : value)
  }
  return Object.fromEntries(LIMITS.map((limit) => [limit, typed(limit)])) as Record<Limit, string>
}

/**
 * Returns the typed number; null for none, undefined if it is not allowed. Sizes are typed in mebibytes; a byte is a
 * fraction of one with 20 decimal places.
 */
export function limitOf(limit: Limit, typed: string): number | null | undefined {
  const digits = toLatinDigits(typed)
  if (digits === '') return null
  if (!(isBytes(limit) ? /^\d{1,12}(\.\d{1,20})?$/ : /^\d{1,10}$/).test(digits)) return undefined
  const value = isBytes(limit) ? Math.round(Number(digits) * BYTES_PER_MEBIBYTE) : Number(digits)
  return limit === 'storageBytes' || value <= MAX_COUNT ? value : undefined
}
