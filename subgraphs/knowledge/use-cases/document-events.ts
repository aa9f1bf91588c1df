import { endableIterator } from '../../common/endable-iterator.ts'
import { ServiceUnavailable } from '../../common/errors.ts'
import type { DocumentRecord } from '../domain/records.ts'

/** Changes of documents as they happen in this process, to whoever listens; each organization sees its own. */
export interface DocumentEvents {
  publish(document: DocumentRecord): void
  /** From now on. A listener that falls behind gets `service_unavailable` as its end: no event is left out silently. */
  listen(filter: { readonly organizationId: string; readonly collectionId: string | null }): AsyncIterableIterator<DocumentRecord>
}

/** Changes that a listener has not taken yet. */
const MAX_UNREAD = 1_000

interface Listener {
  readonly organizationId: string
  readonly collectionId: string | null
  readonly unread: DocumentRecord[]
  overrun: boolean
  wake: (() => void) | undefined
}

export function documentEvents(): DocumentEvents {
  const listeners = new Set<Listener>()
  return {
    publish(document) {
      for (const listener of listeners) {
        if (listener.organizationId !== document.organizationId) continue
        if (listener.collectionId !== null && listener.collectionId !== document.collectionId) continue
        if (listener.unread.length < MAX_UNREAD) listener.unread.push(document)
        else listener.overrun = true
        listener.wake?.()
      }
    },
    listen(filter) {
      const listener: Listener = { ...filter, unread: [], overrun: false, wake: undefined }
      listeners.add(listener)
      return endableIterator<DocumentRecord>(
        async () => {
          while (listener.unread.length === 0 && !listener.overrun) {
            await new Promise<void>((resolve) => {
              listener.wake = resolve
            })
          }
          const value = listener.unread.shift()
          if (!value) throw new ServiceUnavailable('This subscription: it was read too slowly')
          return { done: false, value }
        },
        () => void listeners.delete(listener),
      )
    },
  }
}
