import { useCallback, useRef, useState } from 'react'
import { useCalm, useRepeat } from '../../../data/calm.ts'
import { type QueryResult, useEvents } from '../../../data/query-result.ts'
import { DOCUMENT_UPDATED, type LiveDocument } from './documents.ts'

/** Between two questions for the list, while many documents move. */
const REFRESH_PAUSE_MS = 1_500
/** No event says what moved between an answer and the beginning of the events. */
const POLL_INTERVAL_MS = 15_000

export interface LiveDocuments {
  /** What the newest event said of a document. Null: it was deleted. Undefined: nothing. */
  readonly of: (id: string) => LiveDocument | null | undefined
}

/**
 * The documents of a collection as they are now. `answer` is asked for again, not too often, when a document came, went
 * or got another status, and now and then without an event; `onRefresh` is called with it.
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
