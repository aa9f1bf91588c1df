import { KisError } from '../../../common/errors.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { SpendLimit } from '../domain/key-spending.ts'

/** The id was used before, for another call. */
export class HoldConflict extends KisError {
  constructor(id: string, what: string) {
    super('idempotency_conflict', `The hold \`${id}\` ${what}.`, { param: 'id' })
  }
}

/**
 * The hold has expired or ended, so the engine must not be called any more. Another call with its own hold can succeed.
 */
export class HoldEnded extends KisError {
  constructor(id: string) {
    super('service_unavailable', `The hold \`${id}\` has ended.`, { retryAfterMs: 0 })
  }
}

/** The cost of the call could exceed what the run may still spend. */
export class RunLimitExceeded extends KisError {
  constructor() {
    super(
      'run_limit_exceeded',
      'The next call of the run may cost more than what is left of its cost limit. Raise the limit, or request less output.',
    )
  }
}

/** The wallet cannot cover the most that the call can cost. */
export class InsufficientQuota extends KisError {
  constructor() {
    super('insufficient_quota', 'The wallet cannot cover the most that this call may cost. Add credit, or request less output.')
  }
}

/** The wallet may have enough, but the key may not spend it. */
export class SpendLimitReached extends KisError {
  /** `figures`: null when the limit is on an ancestor of the caller's key, whose figures the caller may not see. */
  constructor(resetsAt: Date | null, figures: { readonly limit: SpendLimit; readonly spent: number; readonly held: number } | null) {
    const which = figures ? describeSpending(figures) : 'the spend limit of a key from which this one descends'
    const next = resetsAt ? `, until ${resetsAt.toISOString()}` : ''
    super('insufficient_quota', `The most that this call may cost does not fit ${which}${next}.`)
  }
}

/** The plan allows no more pages of OCR in this month. */
export class PageQuotaReached extends KisError {
  constructor(used: number, limit: number, needed: number, resetsAt: Date) {
    super(
      'insufficient_quota',
      `The plan allows ${limit} pages of OCR a month: ${used} are used, ${needed} more are needed, until ${resetsAt.toISOString()}. Retry the document then, or ask for a larger plan.`,
    )
  }
}

function describeSpending({ limit, spent, held }: { readonly limit: SpendLimit; readonly spent: number; readonly held: number }): string {
  const period = { day: 'a day', month: 'a month', total: 'in total' }[limit.period]
  return `the key's spend limit of ${usd(limit.amount)} USD ${period}: ${usd(spent)} are spent and ${usd(held)} held by calls in progress`
}

function usd(amount: number): string {
  return formatUsd(BigInt(amount))
}
