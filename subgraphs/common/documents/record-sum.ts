import { createHash } from 'node:crypto'

const MODULUS = 1n << 256n
/** Two sums that differ, differ in this many digits but once in 2^64. */
const SHOWN = 16

/**
 * A checksum of records in any order: the sum of their SHA-256s modulo 2^256. It finds what storage, a transfer or a
 * defect changes; it is no protection from somebody who chooses records to fit.
 */
export class RecordSum {
  #sum = 0n
  #count = 0

  /** Adds a record, given by its parts. */
  add(...parts: readonly (string | Uint8Array)[]): void {
    const hash = createHash('sha256')
    for (const part of parts) hash.update(part)
    this.#sum = (this.#sum + BigInt(`0x${hash.digest('hex')}`)) % MODULUS
    this.#count++
  }

  get count(): number {
    return this.#count
  }

  /** 16 hexadecimal digits. */
  get text(): string {
    return this.#sum.toString(16).padStart(64, '0').slice(-SHOWN)
  }
}

/** A stored value as JSON with the fields of every object in order, so that equal values give equal texts, and no others. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key, inner) {
    // JSON would make a date the same as its text.
    if (this[key] instanceof Date) return { $date: this[key].getTime() }
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
