import type { Quantities } from './money.ts'
import type { StoredRates } from './rate-card.ts'

export type Operation = 'chat_completion' | 'embedding' | 'transcription' | 'rerank' | 'ocr'
/** The origin of the quantities: the engine reported them, or this service counted or estimated them. */
export type UsageSource = 'provider' | 'counted' | 'estimated'

/** An immutable record of consumption. Its amount follows only from its own quantities and rates. */
export type UsageRecord = {
  readonly _id: string
  readonly organizationId: string
  /** Sorts an organization's records by time: `usagePosition`. */
  readonly position: string
  readonly apiKeyId: string
  readonly modelId: string
  readonly operation: Operation
  readonly requestId: string
  readonly quantities: Quantities
  /** The rates of the tier that the call reached. */
  readonly rates: StoredRates
  readonly rateCardVersion: string
  /** The charge in nano-USD. */
  readonly amount: number
  readonly source: UsageSource
  readonly at: Date
}

/** Returns time and id in one string, so that a page starts after it with a single comparison. */
export function usagePosition(at: Date, id: string): string {
  return `${at.toISOString()} ${id}`
}

/** The form of `usagePosition`. */
export const USAGE_POSITION = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z use_[0-9a-f]{32}$/
