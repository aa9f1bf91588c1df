import { KisError } from '../../../common/errors.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { Operation } from '../domain/usage.ts'
import { addSums, NO_USAGE, sumsOfRecord, toSums, type UsageSums } from '../domain/usage-total.ts'

type UsageDimension = 'model' | 'key' | 'day' | 'hour' | 'operation'

/** The time span, filters and groups of a summary. */
export interface SummaryInput {
  readonly groupBy: readonly UsageDimension[]
  /**
   * Midnights of UTC: from the first day up to but excluding the last. Absent: the 30 days up to and including today.
   * By hour, whole hours; absent: the 24 up to and including this one.
   */
  readonly since?: Date | null
  readonly until?: Date | null
  readonly modelId?: string | null
  readonly apiKeyId?: string | null
  readonly operation?: Operation | null
}

/** Each field is null unless the summary is grouped by it. */
export interface UsageGroup extends UsageSums {
  readonly modelId: string | null
  readonly apiKeyId: string | null
  readonly day: Date | null
  readonly hour: Date | null
  readonly operation: Operation | null
}

interface UsageSummary {
  readonly since: Date
  readonly until: Date
  readonly total: UsageSums
  readonly groups: readonly UsageGroup[]
}

const DAY_MS = 86_400_000
const DEFAULT_DAYS = 30
/** A leap year. */
const MAX_DAYS = 366
const HOUR_MS = 3_600_000
const DEFAULT_HOURS = 24
/** A week. Sums by hour are computed from the records themselves. */
const MAX_HOURS = 168
/**
 * Totals, or records in sums by hour, that one summary may read: a year of a hundred keys that use one model daily. For
 * more, use a filter or a shorter time.
 */
const MAX_READ = 40_000
/** The limit of one read in the document-store port. */
const PAGE_ITEMS = 1_000
/** Groups of one result. */
const MAX_GROUPS = 1_000

/**
 * Returns exact sums of an organization's usage, with every call settled before.
 * @throws {KisError} the time span is wrong, or the summary too large
 */
export async function summarizeUsage(deps: BillingDeps, organizationId: string, input: SummaryInput): Promise<UsageSummary> {
  const isHourly = input.groupBy.includes('hour')
  const { since, until } = isHourly ? wholeHours(input, deps.clock.now()) : wholeDays(input, deps.clock.now())
  await deps.pump.drain(organizationId)
  const groups = new Map<string, UsageGroup>()
  let total = NO_USAGE
  for await (const item of usedIn(deps, organizationId, input, isHourly, since, until)) {
    if (input.operation && item.operation !== input.operation) continue
    const { sums } = item
    total = addSums(total, sums)
    const facts = readFacts(item, input.groupBy)
    const key = JSON.stringify(facts)
    groups.set(key, { ...facts, ...addSums(groups.get(key) ?? NO_USAGE, sums) })
    if (groups.size > MAX_GROUPS) throw tooLarge(`has more than ${MAX_GROUPS} groups`)
  }
  return { since, until, total, groups: [...groups.values()].sort(byTimeThenAmount) }
}

interface Span {
  readonly since: Date
  readonly until: Date
}

function wholeDays(input: SummaryInput, now: Date): Span {
  const span = wholeUnits(input, now, DAY_MS, DEFAULT_DAYS, 'A summary counts whole days: send a midnight in UTC.')
  if (span.until.getTime() - span.since.getTime() > MAX_DAYS * DAY_MS)
    throw new KisError('unsupported_value', `A summary covers at most ${MAX_DAYS} days.`, { param: 'filter.since' })
  return span
}

function wholeHours(input: SummaryInput, now: Date): Span {
  const span = wholeUnits(input, now, HOUR_MS, DEFAULT_HOURS, 'A summary by hour counts whole hours: send the beginning of an hour.')
  if (span.until.getTime() - span.since.getTime() > MAX_HOURS * HOUR_MS)
    throw new KisError('unsupported_value', `A summary by hour covers at most ${MAX_HOURS} hours.`, { param: 'filter.since' })
  return span
}

function wholeUnits({ since, until }: SummaryInput, now: Date, unitMs: number, defaultUnits: number, message: string): Span {
  const end = until ?? new Date(Math.floor(now.getTime() / unitMs + 1) * unitMs)
  // The start is not before 1970, the first time in Unix seconds.
  const start = since ?? new Date(Math.max(end.getTime() - defaultUnits * unitMs, 0))
  for (const [param, instant] of [['filter.since', start] as const, ['filter.until', end] as const])
    if (instant.getTime() % unitMs !== 0) throw new KisError('unsupported_value', message, { param })
  if (end <= start) throw new KisError('unsupported_value', '`until` must be after `since`.', { param: 'filter.until' })
  return { since: start, until: end }
}

/** What one key used of one model by one operation, on a day or by one call. */
interface Used {
  readonly modelId: string
  readonly apiKeyId: string
  readonly operation: Operation
  /** The time of the call, or midnight of the day. */
  readonly at: Date
  readonly sums: UsageSums
}

async function* usedIn(
  { collections }: BillingDeps,
  organizationId: string,
  { modelId, apiKeyId }: SummaryInput,
  isHourly: boolean,
  since: Date,
  until: Date,
): AsyncGenerator<Used> {
  const filter = { organizationId, ...(apiKeyId && { apiKeyId }), ...(modelId && { modelId }) }
  const options = { sort: { position: 1 }, limit: PAGE_ITEMS } as const
  // A day or instant without an id sorts before every position of it.
  const [first, end] = [since, until].map((time) => (isHourly ? time.toISOString() : time.toISOString().slice(0, 10))) as [string, string]
  let from: { readonly $gte: string } | { readonly $gt: string } = { $gte: first }
  for (let read = 0; ; ) {
    const range = { ...filter, position: { ...from, $lt: end } }
    const page: (Used & { readonly position: string })[] = isHourly
      ? (await collections.usage.find(range, options)).map((record) => ({ ...record, sums: sumsOfRecord(record) }))
      : (await collections.usageTotals.find(range, options)).map((item) => ({ ...item, at: dayOf(item.position), sums: toSums(item) }))
    read += page.length
    if (read > MAX_READ) throw tooLarge('covers too much usage')
    yield* page
    if (page.length < PAGE_ITEMS) return
    from = { $gt: page.at(-1)!.position }
  }
}

function dayOf(instant: string): Date {
  return new Date(`${instant.slice(0, 10)}T00:00:00.000Z`)
}

function readFacts({ modelId, apiKeyId, at, operation }: Used, groupBy: readonly UsageDimension[]) {
  const by = (dimension: UsageDimension) => groupBy.includes(dimension)
  return {
    modelId: by('model') ? modelId : null,
    apiKeyId: by('key') ? apiKeyId : null,
    day: by('day') ? dayOf(at.toISOString()) : null,
    hour: by('hour') ? new Date(Math.floor(at.getTime() / HOUR_MS) * HOUR_MS) : null,
    operation: by('operation') ? operation : null,
  }
}

/**
 * Sorts by day and hour, oldest first; then by amount, highest first; then by the other fields, so that the order is
 * stable.
 */
function byTimeThenAmount(a: UsageGroup, b: UsageGroup): number {
  const timeOf = ({ day, hour }: UsageGroup) => (hour ?? day)?.getTime() ?? 0
  const times = timeOf(a) - timeOf(b)
  if (times !== 0) return times
  if (a.amount !== b.amount) return a.amount > b.amount ? -1 : 1
  const groupKey = ({ modelId, apiKeyId, operation }: UsageGroup) => `${modelId} ${apiKeyId} ${operation}`
  return groupKey(a) < groupKey(b) ? -1 : 1
}

function tooLarge(what: string): KisError {
  return new KisError('invalid_request', `The summary ${what}. Group by less, filter, or request a shorter period.`, { param: 'groupBy' })
}
