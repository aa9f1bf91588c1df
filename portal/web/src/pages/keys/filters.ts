import { readOne, readText } from '../../data/search-params.ts'

/** What the address says of the list, so that a link shows the same. */
export interface Filters {
  readonly q?: string
  readonly state?: (typeof STATES)[number]
  /** The id of the key whose details are open. */
  readonly key?: string
}

export const STATES = ['active', 'ended'] as const

export function readFilters({ q, state, key }: Readonly<Record<string, unknown>>): Filters {
  return { q: readText(q), state: readOne(STATES, state), key: readText(key) }
}
