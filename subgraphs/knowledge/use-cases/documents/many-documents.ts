import { KisError, NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from './collections.ts'
import { createDocument, deleteDocument, getDocument, retryDocument } from './documents.ts'

/** Maximum documents per call, which takes some seconds. */
const MAX_DOCUMENTS = 100

type Attached = Awaited<ReturnType<typeof createDocument>>
type Attaching = Omit<Parameters<typeof createDocument>[2], 'collectionId'>

/** The outcome for one item: a result, or the error that a single call would have returned. */
export interface Outcome<T> {
  readonly id: string
  readonly value: T | null
  readonly error: KisError | null
}

/**
 * Attaches many files to a collection. A file that cannot be attached does not affect the others.
 * @throws {KisError} `array_above_max_length` if there are too many.
 * @throws {NotFound} if the organization has no such collection.
 */
export async function createDocuments(
  deps: Deps,
  context: LinkContext,
  { collectionId, documents }: { readonly collectionId: string; readonly documents: readonly Attaching[] },
): Promise<readonly Outcome<Attached>[]> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  requireFew(documents, 'input.documents')
  await getCollection(deps, organizationId, collectionId, 'input.collectionId')
  return each(
    deps,
    documents,
    ({ fileId }) => fileId,
    (document) => createDocument(deps, context, { ...document, collectionId }),
  )
}

/**
 * Requeues many failed documents of a collection. Documents in another status stay unchanged.
 * @throws {KisError} `array_above_max_length` if there are too many.
 * @throws {NotFound} if the organization has no such collection.
 */
export async function retryDocuments(
  deps: Deps,
  context: LinkContext,
  { collectionId, ids }: { readonly collectionId: string; readonly ids: readonly string[] },
): Promise<readonly Outcome<DocumentRecord>[]> {
  return inCollection(deps, context, collectionId, ids, (id) => retryDocument(deps, context, id))
}

/**
 * Deletes many documents of a collection.
 * @throws {KisError} `array_above_max_length` if there are too many.
 * @throws {NotFound} if the organization has no such collection.
 */
export async function deleteDocuments(
  deps: Deps,
  context: LinkContext,
  { collectionId, ids }: { readonly collectionId: string; readonly ids: readonly string[] },
): Promise<readonly Outcome<boolean>[]> {
  return inCollection(deps, context, collectionId, ids, async (id) => {
    await deleteDocument(deps, context, id)
    return true
  })
}

async function inCollection<T>(
  deps: Deps,
  context: LinkContext,
  collectionId: string,
  ids: readonly string[],
  run: (id: string) => Promise<T>,
): Promise<readonly Outcome<T>[]> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  requireFew(ids, 'input.ids')
  await getCollection(deps, organizationId, collectionId, 'input.collectionId')
  return each(
    deps,
    ids,
    (id) => id,
    async (id) => {
      const document = await getDocument(deps, organizationId, id)
      if (document.collectionId !== collectionId) throw new NotFound('document', id)
      return run(id)
    },
  )
}

function requireFew(items: readonly unknown[], param: string): void {
  if (items.length > MAX_DOCUMENTS)
    throw new KisError('array_above_max_length', `At most ${MAX_DOCUMENTS} documents at once, not ${items.length}.`, { param })
}

/** Processes items sequentially, so that a batch call uses no more resources than a single call. */
async function each<Item, T>(
  { log }: Pick<Deps, 'log'>,
  items: readonly Item[],
  idOf: (item: Item) => string,
  run: (item: Item) => Promise<T>,
): Promise<readonly Outcome<T>[]> {
  const outcomes: Outcome<T>[] = []
  for (const item of items) {
    const id = idOf(item)
    try {
      outcomes.push({ id, value: await run(item), error: null })
    } catch (error) {
      if (!(error instanceof KisError)) log.error({ err: error, id }, 'one of many documents failed')
      outcomes.push({ id, value: null, error: error instanceof KisError ? error : new KisError('internal', 'The service failed.') })
    }
  }
  return outcomes
}
