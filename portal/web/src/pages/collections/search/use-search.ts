import { useEffect, useState } from 'react'
import { useClient } from 'urql'
import { type Failure, toFailure } from '../../../data/failure.ts'
import { type Found, SEARCH, type SearchInput } from './search.ts'

export type Searching =
  | { readonly state: 'idle' }
  | { readonly state: 'searching' }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'found'; readonly found: Found; readonly ms: number }

/** Searches once for each input and each `turn`. A search costs, so nothing repeats it unasked. */
export function useSearch(input: SearchInput | null, turn: number): Searching {
  const client = useClient()
  const [searching, set] = useState<Searching>({ state: 'idle' })
  const key = JSON.stringify(input)
  useEffect(() => {
    const asked = JSON.parse(key) as SearchInput | null
    if (!asked) return set({ state: 'idle' })
    let isCurrent = true
    const start = performance.now()
    set({ state: 'searching' })
    // The first look at an address may show what this page found before.
    const requestPolicy = turn === 0 ? 'cache-first' : 'network-only'
    void client
      .query(SEARCH, { input: asked }, { requestPolicy })
      .toPromise()
      .then(({ data, error }) => {
        if (!isCurrent) return
        if (data) set({ state: 'found', found: data.searchCollection, ms: performance.now() - start })
        else set({ state: 'failed', failure: toFailure(error ?? {}) })
      })
    return () => {
      isCurrent = false
    }
  }, [client, key, turn])
  return searching
}
