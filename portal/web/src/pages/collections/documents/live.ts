import { useCallback, useRef, useState } from 'react'
import { useEvents } from '../../../data/answer.ts'
import { useCalm } from '../../../data/calm.ts'
import { DOCUMENT_UPDATED, type LiveDocument } from './documents.ts'

/** Between two questions for the list, while many documents move. */
const ASK_AGAIN_MS = 1_500

export interface LiveDocuments {
  /** What the newest event said of a document. Null: it was deleted. Undefined: nothing. */
  readonly of: (id: string) => LiveDocument | null | undefined
}

/**
 * The documents of a collection as they are now. `onMoved` is called, not too often, when a document came, went or got
 * another status, so that lists and counts are asked for again.
 */
export function useLiveDocuments(collectionId: string, onMoved: () => void): LiveDocuments {
  const [documents, setDocuments] = useState<ReadonlyMap<string, LiveDocument | null>>(new Map())
  const seen = useRef(new Map<string, string>())
  const tell = useCalm(onMoved, ASK_AGAIN_MS)
  useEvents(DOCUMENT_UPDATED, { collectionId, after: null }, ({ documentUpdated: { documentId, document } }) => {
    setDocuments((now) => new Map(now).set(documentId, document))
    const state = document ? `${document.status} ${document.version} ${document.replacement?.status}` : 'deleted'
    if (seen.current.get(documentId) === state) return
    seen.current.set(documentId, state)
    tell()
  })
  const of = useCallback((id: string) => documents.get(id), [documents])
  return { of }
}
