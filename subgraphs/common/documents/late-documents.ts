import type { DocumentStore } from '../ports/document-store.ts'
import { Opening, type OpeningOptions, Unfit } from '../process/opening.ts'

/** Where collections are declared. */
type Declaring = Pick<DocumentStore, 'collection'>

/**
 * The store creates missing indexes within this time. On a large collection it takes longer: the store goes on, and is
 * waited for again.
 */
const INDEXES_TIMEOUT_MS = 60_000

/**
 * Opens a document store in the background, with the collections that `declare` makes. They answer
 * `service_unavailable` until it is open, which needs every declared index to exist and be right.
 */
export function openDocuments<C>(
  declare: (store: Declaring) => C,
  { open, ...options }: Omit<OpeningOptions<DocumentStore>, 'part'>,
): { readonly store: Opening<DocumentStore>; readonly collections: C } {
  const store = new Opening({ ...options, part: 'document store', open: () => declared(open, declare) })
  const late: Declaring = { collection: (spec) => store.late((opened) => opened.collection(spec)) }
  return { store, collections: declare(late) }
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
