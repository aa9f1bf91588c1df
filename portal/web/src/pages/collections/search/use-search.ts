import { useEffect, useRef, useState } from 'react'
import { useClient } from 'urql'
import { type Failure, toFailure } from '../../../data/failure.ts'
import { type Found, SEARCH, type SearchInput } from './search.ts'

type Searching =
  | { readonly state: 'idle' }
  | { readonly state: 'searching' }
  | { readonly state: 'failed'; readonly failure: Failure }
  | { readonly state: 'found'; readonly found: Found; readonly ms: number }

/**
 * Searches once for each input. A search costs, so nothing repeats it automatically: for the input of an address that
 * the reader opens again, the page shows its earlier result.
 */
export function useSearch(input: SearchInput | null): {
  readonly searching: Searching
  /**
   * Requests a new search for this input, even if there is a result. The input becomes `input`, unless it is that
   * already.
   */
  readonly submit: (next: SearchInput | null) => void
} {
  const client = useClient()
  const [searching, set] = useState<Searching>({ state: 'idle' })
  const [submitCount, setSubmitCount] = useState(0)
  const wanted = useRef<string>(undefined)
  const key = JSON.stringify(input)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a repeat asks for the same once more
  useEffect(() => {
    const requested = JSON.parse(key) as SearchInput | null
    if (!requested) return set({ state: 'idle' })
    let isCurrent = true
    const start = performance.now()
    set({ state: 'searching' })
    const requestPolicy = wanted.current === key ? 'network-only' : 'cache-first'
    wanted.current = undefined
    void client
      .query(SEARCH, { input: requested }, { requestPolicy })
      .toPromise()
      .then(({ data, error }) => {
        if (!isCurrent) return
        if (data) set({ state: 'found', found: data.searchCollection, ms: performance.now() - start })
        else set({ state: 'failed', failure: toFailure(error ?? {}) })
      })
    return () => {
      isCurrent = false
    }
  }, [client, key, submitCount])
  const submit = (next: SearchInput | null) => {
    wanted.current = JSON.stringify(next)
    if (wanted.current === key) setSubmitCount((now) => now + 1)
  }
  return { searching, submit }
}
