/** What the address says of the page, so that a link shows the same. */
export interface Filters {
  readonly tab?: Exclude<Tab, 'organizations'>
  readonly q?: string
  readonly status?: (typeof STATUSES)[number]
  readonly plan?: string
}

export const TABS = ['organizations', 'health', 'queue', 'plans'] as const
export const STATUSES = ['ACTIVE', 'SUSPENDED', 'DELETING', 'DELETED'] as const
export type Tab = (typeof TABS)[number]

export function readFilters(search: Readonly<Record<string, unknown>>): Filters {
  const word = (value: unknown) => (typeof value === 'string' && value !== '' ? value.slice(0, 100) : undefined)
  const tab = TABS.find((each) => each === search.tab)
  return {
    tab: tab === 'organizations' ? undefined : tab,
    q: word(search.q),
    status: STATUSES.find((each) => each === search.status),
    plan: word(search.plan),
  }
}
