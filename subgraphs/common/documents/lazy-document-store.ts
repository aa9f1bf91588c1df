import type { DocumentStore } from '../ports/document-store.ts'
import { Opening, type OpeningOptions, Unfit } from '../process/opening.ts'
import { observedPort } from '../telemetry/observed-port.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** The part of a store that declares collections. */
type Declaring = Pick<DocumentStore, 'collection'>

/** The subgraph that owns the store, and where its metrics go. */
interface StoreObserver {
  readonly subgraph: string
  readonly telemetry: Pick<Telemetry, 'metrics' | 'tracer'>
}

/**
 * The store creates missing indexes within this time. A large collection takes longer: the store continues, and the
 * caller waits again.
 */
const INDEXES_TIMEOUT_MS = 60_000

/**
 * Opens a document store in the background, with the collections that `declare` declares. They reject with
 * `service_unavailable` until the store is open, which needs every declared index to exist and be right. `observer` is
 * notified of each of their operations.
 */
export function openDocuments<C>(
  declare: (store: Declaring) => C,
  { open, observer, ...options }: Omit<OpeningOptions<DocumentStore>, 'part'> & { readonly observer?: StoreObserver },
): { readonly store: Opening<DocumentStore>; readonly collections: C } {
  const store = new Opening({ ...options, part: 'document store', open: () => declared(open, declare) })
  const late: Declaring = {
    collection(spec) {
      const collection = store.late((opened) => opened.collection(spec)) as ReturnType<Declaring['collection']>
      return (observer ? observed(collection, spec.name, observer) : collection) as never
    },
  }
  return { store, collections: declare(late) }
}

function observed<C extends object>(collection: C, name: string, { subgraph, telemetry }: StoreObserver): C {
  const attributes = { 'db.collection.name': name, 'db.namespace': subgraph }
  return observedPort(collection, { metric: 'kis_store_seconds', labels: [subgraph], what: name, attributes }, telemetry)
}

async function declared(open: () => Promise<DocumentStore>, declare: (store: Declaring) => unknown): Promise<DocumentStore> {
  const store = await open()
  const signal = AbortSignal.timeout(INDEXES_TIMEOUT_MS)
  try {
    declare(store)
    await store.ping(signal)
    return store
  } catch (error) {
    await store[Symbol.asyncDispose]()
    throw signal.aborted ? new Unfit([`its indexes were not created within ${INDEXES_TIMEOUT_MS / 1_000} s`], { cause: error }) : error
  }
}
