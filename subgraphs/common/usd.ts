import { KisError } from './errors.ts'

const NANO = 1_000_000_000n

/**
 * `"0.0015"` → 1_500_000n nano-USD.
 * @throws {KisError} `invalid_type`: it is not a decimal string with at most 12 digits before the point and 9 after it
 */
export function parseUsd(value: unknown): bigint {
  const match = typeof value === 'string' ? /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/.exec(value) : null
  if (!match) throw new KisError('invalid_type', 'Expected an amount in USD as a decimal string with at most 9 places, such as "12.50".')
  const amount = BigInt(match[2]!) * NANO + BigInt((match[3] ?? '').padEnd(9, '0'))
  return match[1] ? -amount : amount
}

/** 1_500_000n nano-USD → `"0.0015"`, without trailing zeros. */
export function formatUsd(nanoUsd: bigint): string {
  const digits = (nanoUsd < 0n ? -nanoUsd : nanoUsd).toString().padStart(10, '0')
  const fraction = digits.slice(-9).replace(/0+$/, '')
  return `${nanoUsd < 0n ? '-' : ''}${digits.slice(0, -9)}${fraction && `.${fraction}`}`
}
