import { hash } from 'node:crypto'
import { amountOf, type Quantities, UNITS, type Unit } from './money.ts'
import type { Operation, UsageRecord } from './usage.ts'

/**
 * What one key used of one model by one operation on one UTC day: the sum of those usage records, updated when they are
 * copied from the wallet. The total can be rebuilt from the records.
 */
export type UsageTotal = {
  readonly _id: string
  readonly organizationId: string
  /** Sorts an organization's totals by day: the day, then the id. */
  readonly position: string
  readonly apiKeyId: string
  readonly modelId: string
  readonly operation: Operation
  /** Sequence number of the latest ledger entry whose record is included. All earlier records are included, too. */
  readonly upTo: number
  /** Sums as decimal digits: they may exceed exact numbers. */
  readonly calls: string
  readonly amount: string
  readonly quantities: Readonly<Record<Unit, string>>
}

/** Sums without an upper limit. */
export interface UsageSums {
  readonly calls: bigint
  /** Nano-USD. */
  readonly amount: bigint
  readonly quantities: Readonly<Record<Unit, bigint>>
}

export const NO_USAGE: UsageSums = { calls: 0n, amount: 0n, quantities: mapUnits(() => 0n) }

/** A usage record with the sequence number of its ledger entry. */
export interface PostedUsage {
  readonly sequence: number
  readonly usage: UsageRecord
}

/** Returns the empty total to which a record belongs. */
export function toTotal({ organizationId, apiKeyId, modelId, operation, at }: UsageRecord): UsageTotal {
  const day = toDay(at)
  const digest = hash('sha256', [organizationId, day, apiKeyId, operation, modelId].join('\n'))
  const _id = `tot_${digest.slice(0, 32)}`
  return { _id, organizationId, position: `${day} ${_id}`, apiKeyId, modelId, operation, upTo: 0, ...toStoredSums(NO_USAGE) }
}

/** Returns the total with the records that it does not include yet; the same object if it includes all. */
export function totalWith(total: UsageTotal, posted: readonly PostedUsage[]): UsageTotal {
  const missing = posted.filter(({ sequence }) => sequence > total.upTo)
  if (missing.length === 0) return total
  const sums = missing.reduce((sum, { usage }) => addSums(sum, sumsOfRecord(usage)), toSums(total))
  return { ...total, ...toStoredSums(sums), upTo: Math.max(...missing.map(({ sequence }) => sequence)) }
}

export function toSums({ calls, amount, quantities }: UsageTotal): UsageSums {
  return { calls: BigInt(calls), amount: BigInt(amount), quantities: mapUnits((unit) => BigInt(amountOf(quantities, unit))) }
}

/** Returns the sums of a single record. */
export function sumsOfRecord({ amount, quantities }: { readonly amount: number; readonly quantities: Quantities }): UsageSums {
  return { calls: 1n, amount: BigInt(amount), quantities: mapUnits((unit) => BigInt(amountOf(quantities, unit))) }
}

export function addSums(a: UsageSums, b: UsageSums): UsageSums {
  return {
    calls: a.calls + b.calls,
    amount: a.amount + b.amount,
    quantities: mapUnits((unit) => a.quantities[unit] + b.quantities[unit]),
  }
}

/** Returns the UTC day: `2026-11-21`. */
function toDay(at: Date): string {
  return at.toISOString().slice(0, 10)
}

function toStoredSums({ calls, amount, quantities }: UsageSums) {
  return { calls: String(calls), amount: String(amount), quantities: mapUnits((unit) => String(quantities[unit])) }
}

function mapUnits<T>(of: (unit: Unit) => T): Readonly<Record<Unit, T>> {
  return Object.fromEntries(UNITS.map((unit) => [unit, of(unit)])) as Record<Unit, T>
}
