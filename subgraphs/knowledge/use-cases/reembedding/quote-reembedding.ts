import { toInt } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import type { CollectionRecord } from '../../domain/records.ts'
import type { CallContext, EmbeddingModel } from '../../ports/inference.ts'
import { CHUNKS_PER_BLOB } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'
import { getCollection, naming } from '../documents/collections.ts'
import { countChunks } from '../documents/documents.ts'
import { readChunks } from './read-chunks.ts'

/** Maximum chunks whose tokens a quote counts. With an embedded model, this takes some tenths of a second. */
const MAX_COUNTED = 2_048
/** Maximum chunks counted per document in a larger collection, so that one document does not dominate the sample. */
const MAX_COUNTED_EACH = 4 * CHUNKS_PER_BLOB
const PAGE = 100
const MILLION = 1_000_000n
/** Factor on an estimate, because uncounted chunks may be longer. */
const RESERVE = 1.1

/** The estimated or exact cost of a re-embedding. */
export interface ReembeddingQuote {
  readonly collection: CollectionRecord
  readonly model: EmbeddingModel
  readonly passages: number
  readonly tokens: number
  /** True: every chunk was counted. Otherwise, `tokens` is an estimate. */
  readonly isExact: boolean
  /** In nano-USD. */
  readonly amount: bigint
  /** The price of a million tokens, in nano-USD. */
  readonly perMillion: bigint
  readonly isCovered: boolean
}

type QuoteDeps = Pick<Deps, 'store' | 'blobs' | 'index' | 'inference'>

/**
 * Quotes the embedding of a collection's chunks with another model, or again with its own. Changes, holds and charges
 * nothing.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `model_not_found` or `residency_policy_violation` if the key may not use the model.
 * @throws {KisError} `context_length_exceeded` if a chunk is too long for the model.
 */
export async function quoteReembedding(
  deps: QuoteDeps,
  context: LinkContext,
  input: { readonly collectionId: string; readonly embeddingModel: string },
): Promise<ReembeddingQuote> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const caller = { ...context, caller: principal }
  const collection = await getCollection(deps, principal.organizationId, input.collectionId, 'input.collectionId')
  const model = await naming('input.embeddingModel', deps.inference.embeddingModel(input.embeddingModel, caller))
  const counted = await countTokens(deps, caller, collection, model)
  const held = toInt(counted.tokens)
  const { amount, isCovered, perMillion } = await deps.inference.quoteEmbedding(model.id, held, caller)
  // A hold has a maximum of tokens. The rest gets another hold.
  const rest = priceOf(counted.tokens - held, perMillion)
  return { collection, model, ...counted, amount: amount + rest, isCovered, perMillion }
}

/** Returns the price of tokens in nano-USD. */
export function priceOf(tokens: number, perMillion: bigint): bigint {
  return (BigInt(tokens) * perMillion + MILLION - 1n) / MILLION
}

async function countTokens(
  deps: QuoteDeps,
  context: CallContext,
  collection: CollectionRecord,
  model: EmbeddingModel,
): Promise<Pick<ReembeddingQuote, 'passages' | 'tokens' | 'isExact'>> {
  const total = await countChunks(deps, collection)
  const ofEach = total > MAX_COUNTED ? MAX_COUNTED_EACH : MAX_COUNTED
  let counted = 0
  let tokens = 0
  let isWhole = true
  for (let after = ''; counted < MAX_COUNTED; ) {
    const page = await deps.store.documents.find(
      { collectionId: collection._id, listed: true, status: 'ready', _id: { $gt: after } },
      { sort: { _id: 1 }, limit: PAGE },
    )
    for (const document of page) {
      context.signal.throwIfAborted()
      const most = Math.min(document.chunkCount, ofEach, MAX_COUNTED - counted)
      for (let from = 0; from < most; from += CHUNKS_PER_BLOB) {
        const group = await readChunks(deps, document, indexNameOf(collection), from / CHUNKS_PER_BLOB)
        // The document has changed since, or the index has lost chunks.
        if (!group) break
        const counts = await deps.inference.countTokens(model.id, group.texts, context)
        const longest = Math.max(...counts) + model.overheadTokens
        if (longest > model.maxTokens) throw tooLong(longest, model, document._id)
        counted += counts.length
        tokens += counts.reduce((sum, count) => sum + count + model.overheadTokens, 0)
      }
      if (most < document.chunkCount) isWhole = false
    }
    if (page.length < PAGE) break
    after = page.at(-1)!._id
  }
  if ((isWhole && counted >= total) || counted === 0) return { passages: counted, tokens, isExact: true }
  return { passages: total, tokens: Math.ceil((tokens / counted) * total * RESERVE), isExact: false }
}

function tooLong(tokens: number, { id, maxTokens }: EmbeddingModel, documentId: string): KisError {
  const message = `A chunk of ${documentId} has ${tokens} tokens, and the model \`${id}\` takes ${maxTokens}. Choose another model.`
  return new KisError('context_length_exceeded', message, { param: 'input.embeddingModel' })
}
