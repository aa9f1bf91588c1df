import { toInt } from '../../../common/check.ts'
import { EmbeddingStopped, InvalidApiKey, KisError, OrganizationSuspended, StalePrincipal } from '../../../common/errors.ts'
import { reportChange } from '../../../common/events/event-log.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Update } from '../../../common/ports/document-store.ts'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { lastWhole } from '../../domain/index-differences.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import type { DocumentRecord, ReembeddingRecord } from '../../domain/records.ts'
import { grams, words } from '../../domain/text/text-analysis.ts'
import type { IndexedDocument, IndexedGeneration } from '../../ports/chunk-index.ts'
import type { CallContext, EmbeddedChunks, EmbeddingModel } from '../../ports/inference.ts'
import { CHUNKS_PER_BLOB, purgeChunks, storeChunks } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'
import { LeaseLost } from '../documents/lease-lost.ts'
import { indexDetails, readFacts } from '../documents/settle-document.ts'
import { mayRepeat } from '../may-repeat.ts'
import { noteChange } from '../note-change.ts'
import { type ReembeddingGroup, readChunks } from './read-chunks.ts'
import { describeEnd } from './reembedding-events.ts'

const PAGE = 100
const MAX_LISTED = 1_000
/** If a pass embeds at most this many chunks, the next pass is the last, and other documents have to wait. */
const FEW = 64
/**
 * Maximum passes while documents are added. A collection that grows faster than it is embedded makes documents wait.
 */
const MAX_PASSES = 10
/** Maximum documents that all processes ingest concurrently, some in each. */
const MAX_LEASED = 1_000
/** Maximum wait for documents that started with the former model, and the poll interval. */
const MAX_WAIT_MS = 600_000
const POLL_MS = 500
/** Maximum attempts of a batch while its key's rules change. */
const MAX_OVERTAKEN = 10
/** Maximum rewrites of a document's attributes while they change. */
const MAX_TRIES = 20

/** The client, or the deletion of the collection, has cancelled the re-embedding. */
class Cancelled extends Error {}

/**
 * Runs or resumes a leased re-embedding to its end. It embeds the collection's ready documents into a new index. Then
 * one write makes that index the collection's. A permanent error or a cancellation ends it, and the new index is
 * deleted.
 * @throws {LeaseLost} if another worker has it.
 * @throws any other error, after which the job is retried; every recorded batch is paid once.
 */
export async function reembed(deps: Deps, leased: ReembeddingRecord, signal: AbortSignal): Promise<void> {
  await new Reembedding(deps, leased, signal).toTheEnd()
}

/** Records why a re-embedding waits or, if it is `over`, why it failed. The job of a failed one only cleans up. */
export async function noteFailure(
  { store }: Pick<Deps, 'store'>,
  { _id, lease }: { readonly _id: string; readonly lease: string },
  reason: unknown,
  over: boolean,
): Promise<void> {
  const error =
    reason instanceof KisError
      ? { code: reason.code, message: reason.message }
      : { code: 'internal', message: 'The service failed to embed the collection.' }
  const outcome = over ? { outcome: 'failed' } : {}
  await store.reembeddings.findOneAndUpdate({ _id, 'job.lease': lease, outcome: null }, { $set: { error, ...outcome } })
}

class Reembedding {
  readonly #deps: Deps
  readonly #signal: AbortSignal
  #record: ReembeddingRecord

  constructor(deps: Deps, leased: ReembeddingRecord, signal: AbortSignal) {
    this.#deps = deps
    this.#record = leased
    this.#signal = signal
  }

  async toTheEnd(): Promise<void> {
    if (this.#record.outcome === null) {
      try {
        await this.#embedAndSwap()
      } catch (error) {
        if (error instanceof Cancelled) await this.#write({ outcome: 'cancelled', error: null })
        else if (error instanceof LeaseLost || this.#signal.aborted) throw error
        else if (error instanceof KisError && !mayRepeat(error))
          await this.#write({ outcome: 'failed', error: { code: error.code, message: error.message } })
        else {
          // Close the hold while the job waits. If this fails too, billing charges the hold when it expires.
          await this.#closeHold().catch(() => undefined)
          throw error
        }
      }
    }
    await this.#tidy()
  }

  async #embedAndSwap(): Promise<void> {
    if (await this.#announce()) {
      const { organizationId, indexName, dimensions } = this.#record
      await this.#deps.index.createCollection({ organizationId, collectionId: indexName, dimensions })
      for (let pass = 0; pass < MAX_PASSES && (await this.#fill()) > FEW; pass++);
      await this.#swap()
    }
    await this.#write({ outcome: 'completed', error: null })
  }

  /**
   * Writes under the lease.
   * @throws {LeaseLost} if another worker has the re-embedding.
   */
  async #write(set: NonNullable<Update['$set']>, more: Omit<Update, '$set'> = {}): Promise<void> {
    const { _id, job } = this.#record
    const written = await this.#deps.store.reembeddings.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { ...more, $set: set })
    if (!written) throw new LeaseLost()
    this.#record = written
  }

  /** Throws if the re-embedding is cancelled or the process stops. */
  #checkGoesOn(): void {
    this.#signal.throwIfAborted()
    if (this.#record.status === 'cancelling') throw new Cancelled()
  }

  /**
   * Records the new index in the collection, so that later deletions and changes affect both indices. Returns false if
   * the new index is already the collection's.
   */
  async #announce(): Promise<boolean> {
    const { collections } = this.#deps.store
    const { _id, organizationId, collectionId, indexName } = this.#record
    const collection = await collections.findOne({ _id: collectionId, organizationId })
    if (collection && indexNameOf(collection) === indexName) return false
    this.#checkGoesOn()
    const announced =
      collection?.reembedding?.id === _id
        ? collection.listed
        : await collections.findOneAndUpdate(
            { _id: collectionId, listed: true, 'reembedding.id': null },
            { $set: { reembedding: { id: _id, indexName } } },
          )
    if (!announced) throw new Cancelled()
    return true
  }

  /**
   * Scans the collection once: embeds ready documents that the new index lacks, and deletes its chunks of other
   * documents. Returns the number of chunks embedded.
   */
  async #fill(): Promise<number> {
    const { store } = this.#deps
    const { collectionId } = this.#record
    const before = this.#record.done
    await this.#finishStarted()
    for (let after = ''; ; ) {
      this.#checkGoesOn()
      const documents = await store.documents.find(
        { collectionId, listed: true, status: 'ready', _id: { $gt: after } },
        { sort: { _id: 1 }, limit: PAGE },
      )
      const last = documents.length < PAGE ? null : documents.at(-1)!._id
      const there = await this.#pruneToLive(after, last)
      for (const document of documents) if (!there.has(nameIngestion(document))) await this.#embedDocument(document)
      if (last === null) break
      after = last
    }
    await this.#closeHold()
    return this.#record.done - before
  }

  /** Deletes chunks of ingestions that are not live from a range of documents. Returns the complete live ones. */
  async #pruneToLive(after: string, last: string | null): Promise<ReadonlySet<string>> {
    const { index, store } = this.#deps
    const { collectionId, indexName } = this.#record
    const whole = new Set<string>()
    for (let position = after; ; ) {
      const listed = await index.listGenerations(indexName, position, MAX_LISTED)
      const isRest = listed.length < MAX_LISTED
      const end = isRest ? null : lastWhole(listed)
      const entries = listed.filter(({ documentId }) => (last === null || documentId <= last) && (end === null || documentId <= end))
      for (let at = 0; at < entries.length; at += PAGE) {
        const some = entries.slice(at, at + PAGE)
        // Read the documents after the index: an ingestion that is not live now will never be again.
        const ids = [...new Set(some.map(({ documentId }) => documentId))]
        const documents = await store.documents.find({ _id: { $in: ids }, collectionId, listed: true }, { limit: ids.length })
        const live = new Map(documents.map((document) => [nameIngestion(document), document]))
        for (const entry of some) {
          const document = live.get(nameEntry(entry))
          if (!document) await index.deleteGeneration(indexName, entry.documentId, entry.generation)
          else if (entry.chunks === document.chunkCount) whole.add(nameEntry(entry))
        }
      }
      if (end === null || (last !== null && end >= last)) return whole
      position = end
    }
  }

  /**
   * Completes the document that an interrupted worker was embedding. Only the record says which of its chunks are paid.
   */
  async #finishStarted(): Promise<void> {
    const { at } = this.#record
    if (!at) return
    const document = await this.#deps.store.documents.findOne({ _id: at.documentId, listed: true })
    if (document?.liveGeneration === at.generation) await this.#embedDocument(document)
    else await this.#discard(at)
  }

  async #embedDocument(document: DocumentRecord): Promise<void> {
    const { _id: documentId, organizationId, liveGeneration, chunkCount } = document
    const generation = liveGeneration!
    const { indexName, formerIndexName } = this.#record
    const isStarted = this.#record.at?.documentId === documentId && this.#record.at.generation === generation
    if (!isStarted) {
      const total = Math.max(this.#record.total, this.#record.done + chunkCount)
      await this.#write({ at: { documentId, generation, next: 0 }, total })
    }
    for (let next = this.#record.at!.next; next < chunkCount; next = this.#record.at!.next) {
      this.#checkGoesOn()
      const group = await readChunks(this.#deps, document, formerIndexName, next / CHUNKS_PER_BLOB)
      if (!group) {
        if (await this.#isLive(document)) throw lost(documentId)
        return this.#discard(this.#record.at!)
      }
      const embedded = await this.#embed(group.texts)
      const facts = group.attributes ?? (await readFacts(this.#deps, document))
      const attributes = documentAttributes(facts, document)
      const indexed: IndexedDocument = { organizationId, collectionId: indexName, documentId, generation, attributes }
      const chunks = group.chunks.map((chunk, i) => ({
        ...chunk,
        vector: embedded.vectors[i]!,
        tokenStates: embedded.tokenStates?.[i] ?? null,
        words: words(group.texts[i]!),
        grams: grams(group.texts[i]!),
      }))
      await storeChunks(this.#deps, indexed, chunks)
      await this.#deps.index.put(indexed, chunks)
      const { hold, tokens, done } = this.#record
      // Only this write makes the batch paid: it records the chunks together with their tokens.
      await this.#write({
        at: { documentId, generation, next: next + CHUNKS_PER_BLOB },
        hold: { ...hold!, used: toInt(hold!.used + embedded.tokens) },
        tokens: tokens + embedded.tokens,
        done: done + chunks.length,
        error: null,
        'job.failures': 0,
        'job.firstFailureAt': null,
      })
    }
    await this.#settle(document, isStarted)
  }

  /**
   * Updates a document's chunks to its current name and metadata. Deletes them if the document is gone or has another
   * version.
   */
  async #settle(document: DocumentRecord, isStarted: boolean): Promise<void> {
    for (let known = isStarted ? -1 : (document.details ?? 0), tries = 0; tries < MAX_TRIES; tries++) {
      const now = await this.#isLive(document)
      if (!now) return this.#discard(this.#record.at!)
      if ((now.details ?? 0) === known) break
      await indexDetails(this.#deps, now)
      known = now.details ?? 0
    }
    await this.#write({ at: null })
  }

  async #isLive({ _id, liveGeneration }: DocumentRecord): Promise<DocumentRecord | null> {
    return this.#deps.store.documents.findOne({ _id, listed: true, liveGeneration })
  }

  async #discard({ documentId, generation, next }: NonNullable<ReembeddingRecord['at']>): Promise<void> {
    const { indexName } = this.#record
    await this.#deps.index.deleteGeneration(indexName, documentId, generation)
    await purgeChunks(this.#deps, { _id: documentId, liveGeneration: generation, chunkCount: next }, indexName)
    await this.#write({ at: null })
  }

  async #embed(texts: ReembeddingGroup['texts']): Promise<EmbeddedChunks> {
    const { inference } = this.#deps
    const { embeddingModel: modelId } = this.#record
    for (let overtaken = 0; ; ) {
      const context = await this.#context()
      const model = await inference.embeddingModel(modelId, context)
      await this.#reserve(texts, model, context)
      const { id: holdId, used: tokensBefore } = this.#record.hold!
      try {
        return await inference.embedPassages({ holdId, modelId, texts, tokensBefore }, context)
      } catch (error) {
        // The vendor bills what was sent of the batch.
        if (error instanceof EmbeddingStopped)
          await this.#write({ hold: { ...this.#record.hold!, used: toInt(tokensBefore + error.tokens) } })
        if (++overtaken >= MAX_OVERTAKEN) throw error
        // The hold expired while no worker ran, and billing has charged its work.
        if (error instanceof KisError && error.code === 'not_found') await this.#closeHold()
        // The key's rules have changed since they were read.
        else if (!(error instanceof StalePrincipal)) throw error
      }
    }
  }

  /** Opens a hold for all remaining tokens, unless the open hold has room for these texts. */
  async #reserve(texts: ReembeddingGroup['texts'], model: EmbeddingModel, context: CallContext): Promise<void> {
    const { inference } = this.#deps
    const counts = await inference.countTokens(model.id, texts, context)
    const needed = counts.reduce((sum, count) => sum + count + model.overheadTokens, 0)
    const { hold } = this.#record
    if (hold && hold.used + needed <= hold.tokens) return
    await this.#closeHold()
    const { quoted, done, total } = this.#record
    const left = done === 0 ? quoted.tokens : Math.ceil((quoted.tokens / Math.max(1, quoted.passages)) * Math.max(0, total - done))
    // A hold has a maximum of tokens. The rest gets another hold.
    const tokens = toInt(Math.max(needed, left))
    const id = await inference.openEmbedding(model.id, tokens, context)
    await this.#write({ hold: { id, tokens, used: 0 } })
  }

  /** Charges the used tokens of the open hold, and releases the rest. */
  async #closeHold(): Promise<void> {
    const { hold, charged } = this.#record
    if (!hold) return
    const caller = await this.#findCaller()
    const context = caller && { caller, requestId: this.#record._id, signal: this.#signal }
    const charge = context ? await this.#deps.inference.closeEmbedding(hold.id, hold.used, context) : 0n
    await this.#write({ hold: null, charged: String(BigInt(charged) + charge) })
  }

  /** Returns the context of the key that started the re-embedding, with its current rules. */
  async #context(): Promise<CallContext> {
    const caller = await this.#findCaller()
    if (caller?.isSuspended) throw new OrganizationSuspended()
    if (!caller || caller.isEnded) throw new InvalidApiKey()
    return { caller: requireScope(caller, 'knowledge:write'), requestId: this.#record._id, signal: this.#signal }
  }

  #findCaller() {
    const { organizationId, apiKeyId } = this.#record
    return this.#deps.accounts.findPrincipal(organizationId, apiKeyId, this.#signal)
  }

  /**
   * Makes the new index and model the collection's in one write. Before that, no ingestion starts with the former
   * model, and running ingestions finish. Therefore, every ready document is in the new index at the swap.
   */
  async #swap(): Promise<void> {
    const { collections } = this.#deps.store
    const { _id: id, collectionId, embeddingModel, dimensions, indexName, job } = this.#record
    // Names this worker, so that a worker that has lost its lease cannot swap after another one has allowed ingestions
    // again.
    const closedBy = job!.lease!
    const own = { _id: collectionId, listed: true, 'reembedding.id': id }
    await this.#write({ stage: 'swapping' })
    try {
      this.#checkGoesOn()
      if (!(await collections.findOneAndUpdate(own, { $set: { 'reembedding.closedBy': closedBy } }))) throw new Cancelled()
      await this.#waitForIngestions()
      await this.#fill()
      this.#checkGoesOn()
      await noteChange(this.#deps, own._id, 'settings')
      const swapped = await collections.findOneAndUpdate(
        { ...own, 'reembedding.closedBy': closedBy },
        { $set: { embeddingModel, dimensions, indexName }, $unset: { reembedding: '' } },
      )
      if (!swapped) throw (await collections.findOne(own)) ? new LeaseLost() : new Cancelled()
    } catch (error) {
      // Ingestions with the former model resume while the re-embedding waits or after it has ended.
      await collections.findOneAndUpdate({ ...own, 'reembedding.closedBy': closedBy }, { $unset: { 'reembedding.closedBy': '' } })
      throw error
    } finally {
      this.#deps.wake()
    }
  }

  /**
   * Waits until no document of the collection is being ingested. Ingestions that take too long are interrupted and
   * restart later.
   */
  async #waitForIngestions(): Promise<void> {
    const { store, clock } = this.#deps
    const { collectionId } = this.#record
    const until = clock.now().getTime() + MAX_WAIT_MS
    for (;;) {
      const leased = await store.documents.find({ 'job.lease': { $gt: '' } }, { sort: { 'job.lease': 1 }, limit: MAX_LEASED })
      const running = leased.filter(({ job, ...document }) => document.collectionId === collectionId && job!.kind === 'ingest')
      if (running.length === 0) return
      if (clock.now().getTime() > until) {
        // Without its lease, an ingestion can no longer write.
        for (const { _id, job } of running)
          await store.documents.findOneAndUpdate(
            { _id, 'job.lease': job!.lease },
            { $set: { 'job.dueAt': clock.now(), 'job.lease': null } },
          )
        continue
      }
      await this.#write({ stage: 'swapping' })
      this.#checkGoesOn()
      await clock.sleep(POLL_MS, this.#signal)
    }
  }

  /** Cleans up after the re-embedding: only the index that serves searches stays. Each step may be repeated. */
  async #tidy(): Promise<void> {
    const { store, index, clock } = this.#deps
    await this.#closeHold()
    await this.#write({ stage: 'tidying' })
    const { _id, organizationId, collectionId, outcome, indexName, formerIndexName, done } = this.#record
    const isDone = outcome === 'completed'
    if (!isDone) await store.collections.findOneAndUpdate({ _id: collectionId, 'reembedding.id': _id }, { $unset: { reembedding: '' } })
    const unused = isDone ? formerIndexName : indexName
    await index.dropCollection(unused)
    for (let after = ''; ; ) {
      const documents = await store.documents.find({ collectionId, listed: true, _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE })
      for (const document of documents) await purgeChunks(this.#deps, document, unused)
      if (documents.length < PAGE) break
      this.#signal.throwIfAborted()
      after = documents.at(-1)!._id
    }
    const endedAt = clock.now()
    const { $set: marks, $push } = reportChange(organizationId, endedAt, describeEnd(this.#record))
    await this.#write(
      { status: outcome, stage: null, at: null, endedAt, ...(isDone && { total: done }), ...marks },
      { $unset: { job: '', openKey: '' }, $push },
    )
    this.#deps.events.kick(organizationId)
  }
}

function nameIngestion({ _id, liveGeneration }: Pick<DocumentRecord, '_id' | 'liveGeneration'>): string {
  return `${_id} ${liveGeneration}`
}

function nameEntry({ documentId, generation }: Pick<IndexedGeneration, 'documentId' | 'generation'>): string {
  return `${documentId} ${generation}`
}

function lost(documentId: string): KisError {
  return new KisError('internal', `The chunk index has lost chunks of ${documentId}. The operator repairs it with \`kis verify --repair\`.`)
}
