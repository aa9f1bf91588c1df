import type { Scope } from '../../app/session.tsx'
import { toAmount, toLatinDigits } from '../../parts/typed-number.ts'
import type { Key } from './keys.ts'

export const PERIODS = ['DAY', 'MONTH', 'TOTAL'] as const
const MAX_NAME = 100

/** A key in a form: the fields' values as they are typed. */
export interface Draft {
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Empty: every model. */
  readonly models: readonly string[]
  readonly requestsPerMinute: string
  readonly tokensPerMinute: string
  readonly spendAmount: string
  readonly spendPeriod: (typeof PERIODS)[number]
  /** A day such as `2027-01-31`; the key works until its end. Empty: forever. */
  readonly lastDay: string
}

export const NEW_KEY: Draft = {
  name: '',
  scopes: ['INFERENCE', 'KNOWLEDGE_READ', 'KNOWLEDGE_WRITE'],
  models: [],
  requestsPerMinute: '',
  tokensPerMinute: '',
  spendAmount: '',
  spendPeriod: 'MONTH',
  lastDay: '',
}

export function draftOf({ name, scopes, modelAllowlist, requestsPerMinute, tokensPerMinute, spendLimit, expiresAt }: Key): Draft {
  return {
    name,
    scopes,
    models: modelAllowlist ?? [],
    requestsPerMinute: requestsPerMinute?.toString() ?? '',
    tokensPerMinute: tokensPerMinute?.toString() ?? '',
    spendAmount: spendLimit?.amount ?? '',
    spendPeriod: spendLimit?.period ?? 'MONTH',
    lastDay: expiresAt ? dayBefore(new Date(expiresAt)) : '',
  }
}

export type DraftProblem = 'nameMissing' | 'nameLong' | 'scopesMissing' | 'notWhole' | 'notAmount' | 'dayPast'
type Problems = Partial<Record<keyof Draft, DraftProblem>>

/** Returns the problems by field, before anything is sent. */
export function problemsOf(draft: Draft, now = new Date()): Problems {
  const { name, scopes, requestsPerMinute, tokensPerMinute, spendAmount, lastDay } = draft
  const length = [...name.trim()].length
  const rate = (typed: string) => (typed.trim() === '' || /^[1-9]\d{0,8}$/.test(toLatinDigits(typed)) ? undefined : ('notWhole' as const))
  const all: Problems = {
    name: length === 0 ? 'nameMissing' : length > MAX_NAME ? 'nameLong' : undefined,
    scopes: scopes.length === 0 ? 'scopesMissing' : undefined,
    requestsPerMinute: rate(requestsPerMinute),
    tokensPerMinute: rate(tokensPerMinute),
    spendAmount: spendAmount.trim() === '' || (toAmount(spendAmount) && !spendAmount.includes('-')) ? undefined : 'notAmount',
    lastDay: lastDay !== '' && endOf(lastDay) <= now ? 'dayPast' : undefined,
  }
  return Object.fromEntries(Object.entries(all).filter(([, problem]) => problem)) as Problems
}

/** Returns the input of the mutation. The draft must have no problems. */
export function inputOf({ name, scopes, models, requestsPerMinute, tokensPerMinute, spendAmount, spendPeriod, lastDay }: Draft) {
  const rate = (typed: string) => (typed.trim() === '' ? null : Number(toLatinDigits(typed)))
  return {
    name: name.trim(),
    scopes: [...scopes],
    modelAllowlist: models.length === 0 ? null : [...models],
    requestsPerMinute: rate(requestsPerMinute),
    tokensPerMinute: rate(tokensPerMinute),
    spendLimit: spendAmount.trim() === '' ? null : { amount: toLatinDigits(spendAmount), period: spendPeriod },
    expiresAt: lastDay === '' ? null : endOf(lastDay).toISOString(),
  }
}

/** Returns the midnight at the end of a day, in the reader's time zone. */
function endOf(day: string): Date {
  const [year, month, date] = day.split('-').map(Number)
  return new Date(year!, month! - 1, date! + 1)
}

function dayBefore(end: Date): string {
  const last = new Date(end.getTime() - 1)
  return [last.getFullYear(), last.getMonth() + 1, last.getDate()].map((part) => String(part).padStart(2, '0')).join('-')
}
