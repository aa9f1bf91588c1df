import type { UsageRecord } from './usage.ts'

/** Most rows of the file. The REST export has no such limit. */
export const MAX_ROWS = 10_000

const HEAD = ['id', 'at', 'operation', 'model', 'api_key', 'amount_usd', 'source', 'request_id', 'rate_card', 'quantities'] as const

/** Writes records as CSV (RFC 4180). Names of keys are text of people, so no cell may start a spreadsheet formula. */
export function toCsv(records: readonly UsageRecord[]): string {
  const rows = records.map(({ id, at, operation, model, apiKey, amount, source, requestId, rateCardVersion, quantities }) => [
    id,
    at,
    operation,
    model?.id ?? '',
    apiKey?.name ?? '',
    amount,
    source,
    requestId,
    rateCardVersion,
    quantities.map(({ unit, quantity }) => `${unit}=${quantity}`).join(' '),
  ])
  return [HEAD, ...rows].map((row) => row.map(cell).join(',')).join('\r\n')
}

function cell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
