import type { DocumentCollection, DocumentStore } from '../../common/ports/document-store.ts'

/** A call that was sent with an idempotency key, and what came of it. */
export type KeyedCall = {
  /** Made of the API key's id and the digest of the idempotency key. */
  readonly _id: string
  readonly organizationId: string
  /** SHA-256 of the operation and its request in canonical JSON: the same key with another digest is a conflict. */
  readonly digest: string
  /** `running`: an engine may be at work. `answered`: the answer is kept, its charge may be missing. `ended`: nothing more happens. */
  readonly state: 'running' | 'answered' | 'ended'
  /** Of the run that writes; whoever takes the call over makes another. */
  readonly token: string
  /** When this has passed, the process that ran the call is gone. */
  readonly leaseUntil: Date
  /** The newest hold of the call; null: none was placed, so that nothing was charged. */
  readonly holdId: string | null
  /** What is replayed, packed; null until there is something. */
  readonly outcome: string | null
  /** Nano-USD that were charged, as a decimal; null until the call has ended. */
  readonly cost: string | null
  readonly startedAt: Date
  /** When the key may stand for another call. */
  readonly expiresAt: Date
}

/** A process of inference that lives. */
export type Replica = {
  readonly _id: string
  readonly seenAt: Date
}

export interface Collections {
  readonly keyedCalls: DocumentCollection<KeyedCall>
  readonly replicas: DocumentCollection<Replica>
}

export function openCollections(store: Pick<DocumentStore, 'collection'>): Collections {
  return {
    keyedCalls: store.collection({ name: 'keyed_calls', indexes: [{ fields: ['expiresAt'] }] }),
    replicas: store.collection({ name: 'replicas', indexes: [{ fields: ['seenAt'] }] }),
  }
}
