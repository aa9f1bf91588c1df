import { KisError } from '../../../common/errors.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Operation } from '../domain/usage.ts'
import { addSums, NO_USAGE, toSums, type UsageSums, type UsageTotal } from '../domain/usage-total.ts'

export type UsageDimension = 'model' | 'key' | 'day' | 'operation'

export interface SummaryInput {
  readonly groupBy: readonly UsageDimension[]
  /**
   * Midnights of UTC: from the first day on, up to but not including the last. Left out: the 30 days up to today,
   * included.
   */
  readonly since?: Date | null
  readonly until?: Date | null
  readonly modelId?: string | null
  readonly apiKeyId?: string | null
  readonly operation?: Operation | null
}

/** Null unless the summary is grouped by it. */
export interface UsageGroup extends UsageSums {
  readonly modelId: string | null
  readonly apiKeyId: string | null
  readonly day: Date | null
  readonly operation: Operation | null
}

export interface UsageSummary {
  readonly since: Date
  readonly until: Date
  readonly total: UsageSums
  readonly groups: readonly UsageGroup[]
}

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
/** A leap year. */
const MAX_DAYS = 366
/**
 * Totals that one summary may read: a year of a hundred keys that use one model daily. For more, use a filter or a
 * shorter time.
 */
const MAX_TOTALS = 40_000
/** As the port allows. */
const PAGE_TOTALS = 1_000
/** Groups of one answer. */
const MAX_GROUPS = 1_000

/**
 * Gives exact sums of an organization's usage, with every call settled before.
 * @throws {KisError} the time span is wrong, or the summary too large
 */
export async function summarizeUsage(deps: BillingDeps, organizationId: string, input: SummaryInput): Promise<UsageSummary> {
  const { since, until } = wholeDays(input, deps.clock.now())
  await deps.pump.drain(organizationId)
  const groups = new Map<string, UsageGroup>()
  let total = NO_USAGE
  for await (const item of totalsIn(deps, organizationId, input, since, until)) {
    if (input.operation && item.operation !== input.operation) continue
    const sums = toSums(item)
    total = addSums(total, sums)
    const facts = readFacts(item, input.groupBy)
    const key = JSON.stringify(facts)
    groups.set(key, { ...facts, ...addSums(groups.get(key) ?? NO_USAGE, sums) })
    if (groups.size > MAX_GROUPS) throw tooLarge(`has more than ${MAX_GROUPS} groups`)
  }
  return { since, until, total, groups: [...groups.values()].sort(byDayThenAmount) }
}

function wholeDays({ since, until }: SummaryInput, now: Date): { readonly since: Date; readonly until: Date } {
  const end = until ?? new Date(Math.floor(now.getTime() / DAY_MS + 1) * DAY_MS)
  // Not before 1970, where times in Unix seconds begin.
  const begin = since ?? new Date(Math.max(end.getTime() - DEFAULT_DAYS * DAY_MS, 0))
  for (const [param, instant] of [['filter.since', begin] as const, ['filter.until', end] as const])
    if (instant.getTime() % DAY_MS !== 0)
      throw new KisError('unsupported_value', 'A summary counts whole days: give a midnight of UTC.', { param })
  if (end <= begin) throw new KisError('unsupported_value', '`until` must be after `since`.', { param: 'filter.until' })
  if (end.getTime() - begin.getTime() > MAX_DAYS * DAY_MS)
    throw new KisError('unsupported_value', `A summary covers at most ${MAX_DAYS} days.`, { param: 'filter.since' })
  return { since: begin, until: end }
}

async function* totalsIn(
  { collections }: BillingDeps,
  organizationId: string,
  { modelId, apiKeyId }: SummaryInput,
  since: Date,
  until: Date,
): AsyncGenerator<UsageTotal> {
  const filter = { organizationId, ...(apiKeyId && { apiKeyId }), ...(modelId && { modelId }) }
  // A bare day sorts before every position of it.
  const end = until.toISOString().slice(0, 10)
  let begin: { readonly $gte: string } | { readonly $gt: string } = { $gte: since.toISOString().slice(0, 10) }
  for (let read = 0; ; ) {
    const page = await collections.usageTotals.find(
      { ...filter, position: { ...begin, $lt: end } },
      { sort: { position: 1 }, limit: PAGE_TOTALS },
    )
    read += page.length
    if (read > MAX_TOTALS) throw tooLarge('covers too much usage')
    yield* page
    if (page.length < PAGE_TOTALS) return
    begin = { $gt: page.at(-1)!.position }
  }
}

function readFacts({ modelId, apiKeyId, position, operation }: UsageTotal, groupBy: readonly UsageDimension[]) {
  const by = (dimension: UsageDimension) => groupBy.includes(dimension)
  return {
    modelId: by('model') ? modelId : null,
    apiKeyId: by('key') ? apiKeyId : null,
    day: by('day') ? new Date(`${position.slice(0, 10)}T00:00:00.000Z`) : null,
    operation: by('operation') ? operation : null,
  }
}

/**
 * By day, oldest first; within a day, or without days, the highest amount first; equal amounts by their other fields,
 * so that the order is stable.
 */
function byDayThenAmount(a: UsageGroup, b: UsageGroup): number {
  const days = (a.day?.getTime() ?? 0) - (b.day?.getTime() ?? 0)
  if (days !== 0) return days
  if (a.amount !== b.amount) return a.amount > b.amount ? -1 : 1
  const groupKey = ({ modelId, apiKeyId, operation }: UsageGroup) => `${modelId} ${apiKeyId} ${operation}`
  return groupKey(a) < groupKey(b) ? -1 : 1
}

function tooLarge(what: string): KisError {
  return new KisError('invalid_request', `The summary ${what}. Group by less, filter, or ask for a shorter time.`, { param: 'groupBy' })
}
