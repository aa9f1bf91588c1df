import { useCallback, useRef, useState } from 'react'
import { useCalm, useRepeat } from '../../../data/calm.ts'
import { type QueryResult, useEvents } from '../../../data/query-result.ts'
import { DOCUMENT_UPDATED, type LiveDocument } from './documents.ts'

/** Pause between two queries for the list, while many documents change. */
const REFRESH_PAUSE_MS = 1_500
/** Poll interval. No event reports changes between a query and the start of the events. */
const POLL_INTERVAL_MS = 15_000

export interface LiveDocuments {
  /** Returns the state of a document in its newest event. Null: it was deleted. Undefined: there was no event. */
  readonly of: (id: string) => LiveDocument | null | undefined
}

/**
 * Returns the present state of a collection's documents. Repeats the query of `result`, throttled, when a document was
 * added, deleted or got another status, and at times without an event; `onRefresh` is called with each repeat.
 */
export function useLiveDocuments(collectionId: string, result: QueryResult<unknown>, onRefresh = () => {}): LiveDocuments {
  const [documents, setDocuments] = useState<ReadonlyMap<string, LiveDocument | null>>(new Map())
  const seen = useRef(new Map<string, string>())
  const refresh = () => {
    if (result.state === 'ready') result.refresh()
    onRefresh()
  }
  const refreshSoon = useCalm(refresh, REFRESH_PAUSE_MS)
  useRepeat(result.state === 'ready' ? { ...result, refresh } : result, POLL_INTERVAL_MS)
  useEvents(DOCUMENT_UPDATED, { collectionId, after: null }, ({ documentUpdated: { documentId, document } }) => {
    setDocuments((now) => new Map(now).set(documentId, document))
    const state = document ? `${document.status} ${document.version} ${document.replacement?.status}` : 'deleted'
    if (seen.current.get(documentId) === state) return
    seen.current.set(documentId, state)
    refreshSoon()
  })
  const of = useCallback((id: string) => documents.get(id), [documents])
  return { of }
}
