import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { formatUsd } from '../../../common/usd.ts'
import { indexNameOf, newIndexName } from '../../domain/index-name.ts'
import { type CollectionRecord, newJob, type ReembeddingRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { stopReembedding } from '../stop-reembedding.ts'
import { priceOf, quoteReembedding } from './quote-reembedding.ts'

/** Maximum stored re-embeddings per collection. A new one deletes the oldest. */
const MAX_STORED = 20
const REEMBEDDING_ID = /^remb_/

/**
 * Starts to embed a collection's chunks with another model. Searches use the former model until all chunks are
 * embedded. The caller's key pays.
 * @throws {KisError} as `quoteReembedding`.
 * @throws {KisError} `insufficient_quota` if the wallet or the key's spend limit does not cover the quote.
 * @throws {KisError} `in_use` if another re-embedding of the organization is running.
 */
export async function startReembedding(
  deps: Pick<Deps, 'store' | 'blobs' | 'index' | 'inference' | 'ids' | 'clock' | 'wake'>,
  context: LinkContext,
  input: { readonly collectionId: string; readonly embeddingModel: string },
): Promise<ReembeddingRecord> {
  const { store, ids, clock } = deps
  const { organizationId, apiKeyId } = requireScope(context.caller, 'knowledge:write')
  const { collection, model, passages, tokens, amount, isCovered, perMillion } = await quoteReembedding(deps, context, input)
  if (!isCovered) {
    const message = `The wallet or the key's spend limit does not cover ${formatUsd(amount)} USD. Top the wallet up, or raise the limit.`
    throw new KisError('insufficient_quota', message)
  }
  const { _id: collectionId } = collection
  await deleteOldest(deps, collectionId)
  const _id = ids('remb')
  const now = clock.now()
  const reembedding: ReembeddingRecord = {
    _id,
    organizationId,
    collectionId,
    apiKeyId,
    openKey: organizationId,
    formerModel: collection.embeddingModel,
    formerIndexName: indexNameOf(collection),
    embeddingModel: model.id,
    dimensions: model.dimensions,
    indexName: newIndexName(collectionId, _id),
    status: 'running',
    stage: 'embedding',
    quoted: { passages, tokens },
    done: 0,
    total: passages,
    tokens: 0,
    rate: String(perMillion),
    charged: '0',
    at: null,
    hold: null,
    outcome: null,
    error: null,
    startedAt: now,
    endedAt: null,
    job: newJob('reembed', organizationId, now),
    outbox: [],
  }
  await store.reembeddings.insertOne(reembedding).catch(async (error) => {
    throw error instanceof DuplicateKey ? await inProgress(deps, organizationId, error) : error
  })
  deps.wake()
  return reembedding
}

/**
 * Cancels a re-embedding. Embedded tokens are charged, the rest of the hold is released, and the new index is deleted.
 * A re-embedding that has ended, or whose model already serves searches, stays unchanged.
 * @throws {NotFound} if the organization has no such re-embedding.
 */
export async function cancelReembedding(
  deps: Pick<Deps, 'store' | 'clock' | 'wake'>,
  context: LinkContext,
  id: string,
): Promise<ReembeddingRecord> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const found = await deps.store.reembeddings.findOne({ _id: id, organizationId })
  if (!found) throw new NotFound('re-embedding', id)
  await stopReembedding(deps, id)
  return (await deps.store.reembeddings.findOne({ _id: id })) ?? found
}

/** Returns a re-embedding of the caller's organization, or null if there is none. */
export function findReembedding({ store }: Pick<Deps, 'store'>, context: LinkContext, id: string): Promise<ReembeddingRecord | null> {
  const { organizationId } = requireScope(context.caller, 'knowledge:read')
  return store.reembeddings.findOne({ _id: id, organizationId })
}

/**
 * Lists the re-embeddings of a collection. Access is not checked: only a caller that may read the collection has its
 * record.
 */
export function listReembeddings(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId }: CollectionRecord,
  page: OrderedPage,
): Promise<Connection<ReembeddingRecord>> {
  return listById(store.reembeddings, { collectionId }, page, REEMBEDDING_ID)
}

/** Returns the cost of a re-embedding so far, in nano-USD: its charges and the used tokens of its open hold. */
export function costOf({ charged, hold, rate }: Pick<ReembeddingRecord, 'charged' | 'hold' | 'rate'>): bigint {
  return BigInt(charged) + priceOf(hold?.used ?? 0, BigInt(rate))
}

async function deleteOldest({ store }: Pick<Deps, 'store'>, collectionId: string): Promise<void> {
  const newest = await store.reembeddings.find({ collectionId }, { sort: { _id: -1 }, limit: MAX_STORED })
  const first = newest.at(MAX_STORED - 1)
  if (first) await store.reembeddings.deleteMany({ collectionId, _id: { $lte: first._id } })
}

async function inProgress({ store }: Pick<Deps, 'store'>, organizationId: string, cause: DuplicateKey): Promise<KisError> {
  const other = await store.reembeddings.findOne({ openKey: organizationId })
  const named = other ? ` \`${other._id}\` of the collection \`${other.collectionId}\`` : ''
  return new KisError('in_use', `The re-embedding${named} is in progress. Wait for its end, or cancel it.`, {
    param: 'input.collectionId',
    cause,
  })
}
