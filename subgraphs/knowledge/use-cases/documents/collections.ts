import { listSifted, type NameFilter, nameTest, type SiftBudget, type SortedPage } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { checkPlainLines } from '../../../common/plain-text.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { requireName } from '../../domain/names.ts'
import { type CollectionRecord, newJob, type OcrMode } from '../../domain/records.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { noteChange } from '../note-change.ts'
import { MAX_COLLECTIONS } from '../record-room.ts'
import { deleteCollectionNow } from './delete-now.ts'

/** A collection's code must be valid in a path and in a tool's name. */
const CODE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
const MAX_NAME = 200
const MAX_DESCRIPTION = 2_000
/** Maximum agents that an error names. */
const MAX_NAMED = 10

interface CollectionInput {
  readonly code: string
  readonly name: string
  readonly description?: string | null
  /** The model that reranks search results of the collection. Null: none. */
  readonly rerankModel?: string | null
  /** The model that transcribes audio. Null: the collection accepts no audio. */
  readonly transcriptionModel?: string | null
  readonly ocr?: OcrMode | null
}

/**
 * Creates a collection. Nothing is stored if it throws.
 * @throws {KisError} `model_not_found` if the key may not use the embedding model.
 * @throws {KisError} `residency_policy_violation` if the organization's residency policy excludes the model.
 * @throws {KisError} as for the embedding model, if the key may not use the rerank model or the speech model.
 * @throws {KisError} `already_exists` if another collection of the organization has the code.
 * @throws {KisError} `storage_quota_exceeded` if the organization has the maximum number of collections.
 */
export async function createCollection(
  deps: Deps,
  context: LinkContext,
  input: CollectionInput & { readonly embeddingModel: string },
): Promise<CollectionRecord> {
  const { store, index, inference, ids, clock } = deps
  const principal = requireScope(context.caller, 'knowledge:write')
  const fields = {
    code: checkedCode(input.code),
    name: checkedName(input.name),
    description: checkedDescription(input.description ?? null),
    ocr: input.ocr ?? 'off',
  }
  const caller = { ...context, caller: principal }
  const model = await naming('input.embeddingModel', inference.embeddingModel(input.embeddingModel, caller))
  const models = {
    rerankModel: await checkedReranker(deps, caller, input.rerankModel ?? null),
    transcriptionModel: await checkedSpeechModel(deps, caller, input.transcriptionModel ?? null),
  }
  const { organizationId } = principal
  if ((await store.collections.countDocuments({ organizationId, listed: true })) >= MAX_COLLECTIONS) {
    throw new KisError('storage_quota_exceeded', `An organization has at most ${MAX_COLLECTIONS} collections. Delete one first.`)
  }
  const collection: CollectionRecord = {
    _id: ids('col'),
    organizationId,
    ...fields,
    embeddingModel: model.id,
    dimensions: model.dimensions,
    ...(models.rerankModel && { rerankModel: models.rerankModel }),
    ...(models.transcriptionModel && { transcriptionModel: models.transcriptionModel }),
    listed: true,
    createdAt: clock.now(),
  }
  // Create the index tables first, so that a visible collection can always store chunks. Unused tables do no harm.
  await index.createCollection({ organizationId, collectionId: collection._id, dimensions: model.dimensions })
  await store.collections.insertOne(collection).catch(async (error) => {
    // After any other error, the collection may have been recorded.
    if (error instanceof DuplicateKey) await index.dropCollection(collection._id)
    throw toCodeConflict(error, input.code)
  })
  return collection
}

/**
 * Changes the specified fields of a collection.
 * @throws {KisError} `not_found` if the organization has no such collection.
 * @throws {KisError} `already_exists` if another collection of the organization has the code.
 */
export async function updateCollection(
  deps: Pick<Deps, 'store' | 'inference'>,
  context: LinkContext,
  {
    id,
    code,
    name,
    description,
    rerankModel,
    transcriptionModel,
    ocr,
  }: { readonly id: string } & { readonly [field in keyof CollectionInput]?: CollectionInput[field] | null },
): Promise<CollectionRecord> {
  const { store } = deps
  const principal = requireScope(context.caller, 'knowledge:write')
  const { organizationId } = principal
  const caller = { ...context, caller: principal }
  const changes = {
    ...(code != null && { code: checkedCode(code) }),
    ...(name != null && { name: checkedName(name) }),
    ...(description !== undefined && { description: checkedDescription(description) }),
    ...(rerankModel !== undefined && { rerankModel: await checkedReranker(deps, caller, rerankModel) }),
    ...(transcriptionModel !== undefined && { transcriptionModel: await checkedSpeechModel(deps, caller, transcriptionModel) }),
    ...(ocr != null && { ocr }),
  }
  if (Object.keys(changes).length === 0) return getCollection({ store }, organizationId, id)
  const updated = await store.collections.findOneAndUpdate({ _id: id, organizationId, listed: true }, { $set: changes }).catch((error) => {
    throw toCodeConflict(error, code ?? '')
  })
  if (!updated) throw new NotFound('collection', id)
  if ('rerankModel' in changes) await noteChange({ store }, id, 'settings')
  return updated
}

/**
 * Hides a collection at once, then deletes its documents, chunks and counts. After a crash, a worker finishes the
 * deletion.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `in_use` if agents search it and `detach` is false. Detached agents report that the collection was
 * deleted.
 */
export async function deleteCollection(deps: Deps, context: LinkContext, id: string, detach = false): Promise<void> {
  const caller = requireScope(context.caller, 'knowledge:write')
  const { organizationId } = caller
  await getCollection(deps, organizationId, id)
  const agents = detach ? [] : await deps.inference.agentsOf(id, { ...context, caller })
  if (agents.length > 0) {
    const named = agents.slice(0, MAX_NAMED).map((name) => `"${name}"`)
    const others = agents.length > MAX_NAMED ? ` and ${agents.length - MAX_NAMED} more` : ''
    const message = `Agents search this collection: ${named.join(', ')}${others}. Remove it from them first, or delete it with \`detach\`: their answers then say that it was deleted.`
    throw new KisError('in_use', message)
  }
  const hidden = await deps.store.collections.findOneAndUpdate(
    { _id: id, organizationId, listed: true },
    { $set: { listed: false, code: id, job: { ...newJob('delete', organizationId, deps.clock.now()) } } },
  )
  if (!hidden) throw new NotFound('collection', id)
  await deleteCollectionNow(deps, id)
}

/**
 * Returns a collection of the organization.
 * @throws {NotFound} if the organization has no such collection.
 */
export async function getCollection(
  { store }: Pick<Deps, 'store'>,
  organizationId: string,
  id: string,
  param: string | null = null,
): Promise<CollectionRecord> {
  const collection = await store.collections.findOne({ _id: id, organizationId, listed: true })
  if (!collection) throw new NotFound('collection', id, param)
  return collection
}

/** Finds a collection of the caller's organization by its ID or code. Returns null if there is none. */
export async function findCollection(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  key: { readonly _id: string } | { readonly code: string },
): Promise<CollectionRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return store.collections.findOne({ ...key, organizationId, listed: true })
}

/** Lists the collections of the caller's organization. */
export async function listCollections(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  { filter, sortBy, ...page }: SortedPage & { readonly filter?: NameFilter | null },
  sifting: SiftBudget,
): Promise<Connection<CollectionRecord>> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  const isNamed = nameTest(filter?.nameContains)
  return listSifted(
    store.collections,
    {
      filter: { organizationId, listed: true },
      idPrefix: 'col',
      since: filter?.since,
      until: filter?.until,
      matches: isNamed && (({ name }) => isNamed(name)),
      sifting,
      sortBy: sortBy === 'name' ? 'name' : null,
    },
    page,
  )
}

/** Returns the catalog ID of the model, which may have been named by an alias. */
async function checkedReranker({ inference }: Pick<Deps, 'inference'>, context: CallContext, model: string | null): Promise<string | null> {
  return model === null ? null : (await naming('input.rerankModel', inference.rerankModel(model, context))).id
}

/** Returns the catalog ID of the model, like `checkedReranker`. */
export async function checkedSpeechModel(
  { inference }: Pick<Deps, 'inference'>,
  context: CallContext,
  model: string | null,
): Promise<string | null> {
  return model === null ? null : (await naming('input.transcriptionModel', inference.transcriptionModel(model, context))).id
}

/** Sets the `param` of an error of the check to the client's argument. */
export async function naming<T>(param: string, check: Promise<T>): Promise<T> {
  try {
    return await check
  } catch (error) {
    throw error instanceof KisError && error.param ? new KisError(error.code, error.message, { param, cause: error }) : error
  }
}

function checkedCode(code: string): string {
  if (CODE.test(code)) return code
  throw new KisError(
    'invalid_request',
    'A collection code has 1 to 64 letters, digits, `_`, `-` or `.`, and begins with a letter or digit.',
    { param: 'input.code' },
  )
}

function checkedName(name: string): string {
  return requireName(name, MAX_NAME, 'input.name')
}

function checkedDescription(description: string | null): string | null {
  checkPlainLines(description ?? '', 'input.description')
  if (description === null || description.length <= MAX_DESCRIPTION) return description
  throw new KisError('string_above_max_length', `A description has at most ${MAX_DESCRIPTION} characters.`, { param: 'input.description' })
}

function toCodeConflict(error: unknown, code: string): unknown {
  if (!(error instanceof DuplicateKey)) return error
  return new KisError('already_exists', `A collection with code \`${code}\` exists in this organization. Choose another code.`, {
    param: 'input.code',
    cause: error,
  })
}
