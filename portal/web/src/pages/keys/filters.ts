import { readOne, readText } from '../../data/search-params.ts'

/** The state of the list in its address, so that a link shows the same. */
export interface Filters {
  readonly q?: string
  readonly state?: (typeof STATES)[number]
  /** The ID of the key whose details are open. */
  readonly key?: string
}

export const STATES = ['active', 'ended'] as const

export function readFilters({ q, state, key }: Readonly<Record<string, unknown>>): Filters {
  return { q: readText(q), state: readOne(STATES, state), key: readText(key) }
}
