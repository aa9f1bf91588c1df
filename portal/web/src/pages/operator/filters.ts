import { readText } from '../../data/search-params.ts'

/** The state of the page in its address, so that a link shows the same. */
export interface Filters {
  readonly tab?: Exclude<Tab, 'organizations'>
  readonly q?: string
  readonly status?: (typeof STATUSES)[number]
  readonly plan?: string
}

export const TABS = ['organizations', 'health', 'queue', 'plans'] as const
export const STATUSES = ['ACTIVE', 'SUSPENDED', 'DELETING', 'DELETED'] as const
export type Tab = (typeof TABS)[number]

/** Characters of the longest name or code of an organization or plan. */
const MAX_TEXT = 100

export function readFilters(search: Readonly<Record<string, unknown>>): Filters {
  const tab = TABS.find((each) => each === search.tab)
  return {
    tab: tab === 'organizations' ? undefined : tab,
    q: readText(search.q)?.slice(0, MAX_TEXT),
    status: STATUSES.find((each) => each === search.status),
    plan: readText(search.plan)?.slice(0, MAX_TEXT),
  }
}
