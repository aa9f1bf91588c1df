import { createHash } from 'node:crypto'
import { toInt } from '../../../common/check.ts'
import { EmbeddingStopped, KisError, OrganizationSuspended, StalePrincipal } from '../../../common/errors.ts'
import { reportChange } from '../../../common/events/event-log.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { DuplicateKey, type Filter, type Update } from '../../../common/ports/document-store.ts'
import { sizeText } from '../../../common/sizes.ts'
import { chunkDocument, type DocumentChunk, toEmbeddingText } from '../../domain/chunking/chunk-document.ts'
import { buildOutline, type Outline } from '../../domain/chunking/outline.ts'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import { isAudio, MAX_AUDIO_BYTES, ZIP } from '../../domain/media-types.ts'
import {
  buildChunkId,
  type CollectionRecord,
  DOCUMENT_ERROR_CODES,
  type DocumentError,
  type DocumentErrorCode,
  type DocumentRecord,
  type FileRecord,
  findableGeneration,
  findPending,
  findReadSoFar,
  generationName,
  generationNumber,
  MAX_VERSIONS,
  type Progress,
  type Replacement,
  toSlowJob,
} from '../../domain/records.ts'
import { detectDocumentLanguage } from '../../domain/text/language.ts'
import { buildSketch } from '../../domain/text/sketch.ts'
import { grams, hasWords, normaliseForEmbedding, words } from '../../domain/text/text-analysis.ts'
import { buildTextMap } from '../../domain/text/text-map.ts'
import { bytesKey } from '../../domain/version-key.ts'
import type { IndexedChunk, IndexedDocument } from '../../ports/chunk-index.ts'
import { type ParsedDocument, ParseFailure, type StreamedFile } from '../../ports/document-parser.ts'
import type { CallContext, EmbeddedChunks, EmbeddingModel } from '../../ports/inference.ts'
import { transcribeAudio } from '../audio/transcribe-audio.ts'
import { deleteFromIndices } from '../chunk-index/index-names.ts'
import { storeLines } from '../chunk-index/page-boxes.ts'
import { CHUNKS_PER_BLOB, purgeIngestions, storeChunks, textKey, textMapKey, toGroup } from '../chunk-index/stored-chunks.ts'
import { count, readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { findAttachedFile, openFile } from '../files/files.ts'
import { mayRepeat } from '../may-repeat.ts'
import { countedChunks, countedVectors } from './count-document.ts'
import { dropContents, dropUnread, hideAndDelete } from './delete-now.ts'
import { describeChange } from './document-events.ts'
import { expandDocument, isExpandable } from './expand-document.ts'
import { LeaseLost, Postponed } from './lease-lost.ts'
import { recognisePages } from './recognise-pages.ts'
import { indexDetails, tidyDocument } from './settle-document.ts'
import { storeSketch } from './similar-documents.ts'

/**
 * Target size of a chunk, about a paragraph. XQuAD's Arabic paragraphs average 128 words, which are some 230 tokens of
 * e5.
 */
const TARGET_TOKENS = 256
const CAP_TOKENS = 480
/**
 * Maximum continuations of a document's embedding after changes of its key's rules. After that, its job is retried
 * later.
 */
const MAX_OVERTAKEN = 10
/**
 * From this number of starts without a recorded step, a document is ingested in isolation. It may have crashed the
 * service, or a document beside it has.
 */
const ISOLATION_STARTS = 2
/** Maximum further starts in isolation. After that, the document fails. */
const MAX_STARTS_ALONE = 3

/** Maximum skipped embedded files that a warning names. */
const MAX_NAMES = 20

/**
 * Failures of an organization that may not store or pay. The parsed text, which no quota counts, is not stored then.
 */
const STORE_NOTHING: readonly DocumentErrorCode[] = ['storage_quota_exceeded', 'insufficient_quota']

/** A permanent error of the document. A retry would fail in the same way. */
class Verdict extends Error {
  readonly code: DocumentErrorCode
  constructor(code: DocumentErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/**
 * Reports whether a document must be ingested in isolation. It then cannot crash the ingestion of other documents, and
 * their crashes do not count against it.
 */
export function needsIsolation({ job }: DocumentRecord): boolean {
  return job!.starts >= ISOLATION_STARTS
}

/**
 * Completes the ingestion of a leased document. It resumes an interrupted ingestion: parsing and chunking repeat with
 * the same result, indexed chunks are not embedded again, and the embedding's hold stays open. One write makes the
 * document ready, or replaces a live version by a new one. `gotOn` is called when a step is recorded, which ends the
 * document's isolation.
 * @throws {LeaseLost} if another worker or a deletion has taken over the document.
 * @throws {unknown} if a retry may succeed. The retry resumes after the last recorded step.
 */
export async function ingestDocument(deps: Deps, leased: DocumentRecord, signal: AbortSignal, gotOn = () => {}): Promise<void> {
  const run = new Ingestion(deps, leased, signal, gotOn)
  try {
    try {
      await run.toTheEnd()
    } catch (error) {
      // An error that an abort causes says nothing about the document.
      const verdict = signal.aborted ? undefined : run.toVerdict(error)
      if (!verdict) throw error
      await run.fail(verdict)
    }
  } catch (error) {
    // A deletion may have finished before the last write.
    const record = await deps.store.documents.findOne({ _id: leased._id })
    if (!record?.listed) await dropContents(deps, leased)
    throw error
  }
}

/**
 * Marks a leased document as failed, because its last step failed too often.
 * @throws {LeaseLost} if another worker or a deletion has taken over the document.
 * @throws {unknown} if the clean-up fails. The call may be repeated.
 */
export async function failDocument(deps: Deps, leased: DocumentRecord, reason: string): Promise<void> {
  const code = modelFailure(leased)
  const advice = code === 'transcription_failed' ? ' Retry the document later, or set another `transcription_model`.' : ''
  await new Ingestion(deps, leased, new AbortController().signal, () => {}).fail(new Verdict(code, reason + advice))
}

function toVerdict(error: unknown, document: DocumentRecord): Verdict | undefined {
  if (error instanceof Verdict) return error
  if (error instanceof ParseFailure) return new Verdict(error.code, error.message, error)
  if (!(error instanceof KisError) || mayRepeat(error)) return undefined
  const code = DOCUMENT_ERROR_CODES.find((known) => known === error.code)
  return new Verdict(code ?? modelFailure(document), error.message, error)
}

/** Returns the failure code of the model that the current stage uses. */
function modelFailure(document: DocumentRecord): 'transcription_failed' | 'embedding_failed' {
  const { stage } = findPending(document) ?? document
  return stage === 'transcribing' ? 'transcription_failed' : 'embedding_failed'
}

/** Document properties that parsing finds. */
interface Facts {
  readonly mediaType: string
  readonly language: string | null
}

class Ingestion {
  readonly #deps: Deps
  readonly #signal: AbortSignal
  readonly #gotOn: () => void
  #document: DocumentRecord
  /** The index that gets the chunks. It is not replaced while the document is leased. */
  #indexName: string

  constructor(deps: Deps, leased: DocumentRecord, signal: AbortSignal, gotOn: () => void) {
    this.#deps = deps
    this.#document = leased
    this.#indexName = leased.collectionId
    this.#signal = signal
    this.#gotOn = gotOn
  }

  /** Converts an error to a verdict. Undefined: a retry may succeed. */
  toVerdict(error: unknown): Verdict | undefined {
    return toVerdict(error, this.#document)
  }

  get #generation(): string {
    return generationName(this.#document.generation)
  }

  /** The ingested file, with the name and metadata that it gets. */
  get #source(): Pick<DocumentRecord, 'fileId' | 'fileName' | 'metadata'> {
    const document = this.#document
    const { fileId, fileName, metadata } = findPending(document) ?? document
    return { fileId, fileName, metadata: metadata ?? document.metadata }
  }

  /** Vectors of the live version, which stay until the swap. */
  get #liveVectors(): number {
    return findPending(this.#document) ? this.#document.chunkCount : 0
  }

  /** Records the progress: on the document, or on the replacement if a live version exists. */
  #report(
    steps: Partial<Pick<Replacement, 'status' | 'stage' | 'progress' | 'error'>>,
    more: Update['$set'] = {},
    update: Omit<Update, '$set'> = {},
  ): Promise<void> {
    const prefix = findPending(this.#document) ? 'replacement.' : ''
    const own = Object.entries(steps).map(([field, value]) => [prefix + field, value && typeof value === 'object' ? { ...value } : value])
    return this.#write({ ...Object.fromEntries(own), ...more }, update)
  }

  /**
   * Writes under the lease and publishes the event.
   * @throws {LeaseLost} if another worker or a deletion has taken over the document.
   */
  async #write(set: Update['$set'], more: Omit<Update, '$set'> = {}): Promise<void> {
    if (!(await this.#writeIf({}, set, more))) throw new LeaseLost()
  }

  /** Like `#write`, but writes only if the record matches the guard. Reports whether it wrote. */
  async #writeIf(guard: Filter, set: Update['$set'], more: Omit<Update, '$set'> = {}): Promise<boolean> {
    const { store, events, clock } = this.#deps
    const { _id, organizationId, job, attempts } = this.#document
    const change = describeChange(this.#document, { ...set, ...(more.$inc?.attempts && { attempts: attempts + more.$inc.attempts }) })
    const report = change && reportChange(organizationId, clock.now(), change)
    const update = { ...more, $set: { ...set, ...report?.$set }, ...(report && { $push: report.$push }) }
    const written = await store.documents.findOneAndUpdate({ ...guard, _id, 'job.lease': job!.lease }, update)
    if (!written) return false
    this.#document = written
    if (set?.['job.starts'] === 0) this.#gotOn()
    if (report) events.kick(organizationId)
    return true
  }

  async toTheEnd(): Promise<void> {
    const { store, inference } = this.#deps
    if (this.#document.job!.starts >= ISOLATION_STARTS + MAX_STARTS_ALONE)
      throw new Verdict(
        'poison',
        `The service stopped ${this.#document.job!.starts} times while it processed the document, the last ${MAX_STARTS_ALONE} times without any other. Upload it in another format.`,
      )
    const { _id, organizationId, collectionId } = this.#document
    const collection = await store.collections.findOne({ _id: collectionId, organizationId, listed: true })
    // The collection is about to switch models. An ingestion that started now would use the former model.
    if (collection?.reembedding?.closedBy) throw new Postponed()
    // The first run, before the slow queue, has counted this attempt.
    const isSlow = this.#document.job!.slowOrganizationId !== undefined
    await this.#report(
      { status: 'processing', stage: 'parsing', error: null, ...(!isSlow && { progress: { done: 0, total: 1 } }) },
      {},
      { $inc: { 'job.starts': 1, ...(!isSlow && { attempts: 1 }) } },
    )
    const pending = findPending(this.#document)
    const file = await findAttachedFile(store, { _id: this.#document._id, fileId: this.#source.fileId })
    if (collection && pending && !file) throw new Verdict('corrupt', 'The file was deleted before it was read.')
    if (!collection || !file) {
      // The collection or file was deleted while a process recorded the document, and that process crashed.
      await hideAndDelete(this.#deps, this.#document)
      throw new LeaseLost()
    }
    this.#indexName = indexNameOf(collection)
    const context = await this.#context()
    const model = await inference.embeddingModel(collection.embeddingModel, context)
    await this.#closeOther(context)
    await this.#hideOther()

    const read = isAudio(file.mediaType) ? this.#hear(collection, file, context) : this.#read(collection, file, context)
    const parsed = await read
    if (!parsed) return
    const { pageCount } = parsed
    const warnings = parsed.warnings.map(({ code, message, pages }) => ({ code, message, pages }))
    await this.#storeText(parsed)
    // A live version retains its own values until the swap.
    await this.#report({ stage: 'chunking', progress: { done: 0, total: 1 } }, pending ? {} : { pageCount, warnings })
    const chunks = await this.#chunk(parsed, model, context)
    const isFirst = this.#document.countedVectors.value === this.#liveVectors
    await this.#reserve(chunks.length, context.caller)
    // Parsing and chunking count as a step, but only the first time.
    if (isFirst) await this.#write({ 'job.starts': 0 })
    const language = detectDocumentLanguage(parsed.text)
    // Store the lines before searches find the first chunk, because a reader may then view its page.
    await storeLines(this.#deps, { documentId: _id, generation: this.#generation }, parsed)
    await this.#embed(model, chunks, { mediaType: parsed.mediaType, language })

    await this.#report({ stage: 'indexing', progress: { done: 0, total: 1 } })
    if (this.#document.embedding) {
      await this.#close(usedTokens(this.#document.embedding), context)
      await this.#write({ embedding: null })
    }
    const textSha256 = createHash('sha256').update(parsed.text).digest('hex')
    const sketch = await buildSketch(parsed.text)
    const facts = { chunkCount: chunks.length, language, textSha256, pageCount, warnings, sketch }
    await this.#goLive(facts, buildOutline(parsed))
  }

  /**
   * Returns the principal of the key that attached the document, with its current rules. A different payer is charged,
   * within the limits of its own key, under the rules of the first key.
   */
  async #context(): Promise<CallContext & { caller: Principal }> {
    const { organizationId, apiKeyId, payer, _id } = this.#document
    const owner = await this.#deps.accounts.findPrincipal(organizationId, apiKeyId, this.#signal)
    if (!owner) throw new LeaseLost()
    if (owner.isSuspended) throw new OrganizationSuspended()
    if (!payer) return { caller: owner, requestId: _id, signal: this.#signal }
    const paying = await this.#deps.accounts.findPrincipal(payer.organizationId, payer.apiKeyId, this.#signal)
    if (!paying) throw new LeaseLost()
    return { caller: { ...owner, ...payer, ancestors: paying.ancestors, revision: paying.revision }, requestId: _id, signal: this.#signal }
  }

  /** Parses the file and records the parsed pages as progress. Once OCR has started, only its pages are counted. */
  async #parse(file: Uint8Array | StreamedFile, name: string, { defersOcr }: { readonly defersOcr: boolean }): Promise<ParsedDocument> {
    const isSlow = this.#document.job!.slowOrganizationId !== undefined
    const lost = new AbortController()
    let next: Progress | null = null
    let writing: Promise<void> | null = null
    // A slow store gets only the latest number.
    const write = async () => {
      for (let progress = next; progress; progress = next) {
        next = null
        await this.#report({ progress })
      }
      writing = null
    }
    const onPages = (done: number, total: number) => {
      next = { done, total }
      writing ??= write().catch((error: unknown) => lost.abort(error))
    }
    const signal = AbortSignal.any([this.#signal, lost.signal])
    try {
      return await this.#deps.parser.parse(file, name, signal, { defersOcr, ...(!isSlow && { onPages }) })
    } finally {
      await writing
      lost.signal.throwIfAborted()
    }
  }

  /** Stores the text. It is readable from now on, unless there is a live version. */
  async #storeText(parsed: ParsedDocument): Promise<void> {
    const { blobs } = this.#deps
    const { _id, generation } = this.#document
    await blobs.put(textKey(_id, this.#generation), Buffer.from(parsed.text))
    await blobs.put(textMapKey(_id, this.#generation), Buffer.from(JSON.stringify(buildTextMap(parsed))))
    const read = findReadSoFar(this.#document)
    if (findPending(this.#document) || read?.indexName === this.#indexName) return
    await this.#write({ readSoFar: { generation, indexName: this.#indexName, chunks: 0 } })
  }

  /** Creates documents from the embedded files, once. */
  async #expand(
    { hasFiles, mediaType }: ParsedDocument,
    source: { readonly collection: CollectionRecord; readonly file: Uint8Array | StreamedFile; readonly principal: Principal },
  ): Promise<void> {
    if (!hasFiles || !isExpandable(this.#document)) return
    const { store } = this.#deps
    const { _id, job } = this.#document
    const isOurs = async () => (await store.documents.findOne({ _id, listed: true, 'job.lease': job!.lease })) !== null
    const { collection, file, principal } = source
    const whole = { document: this.#document, collection, file, mediaType }
    const unreadFiles = await expandDocument(this.#deps, principal, whole, isOurs, this.#signal)
    await this.#write({ unreadFiles: [...unreadFiles] })
  }

  /** Reads the file. Returns null if the document was moved to the slow queue. */
  async #read(
    collection: CollectionRecord,
    file: FileRecord,
    context: CallContext & { caller: Principal },
  ): Promise<ParsedDocument | null> {
    const opened = await openFile(this.#deps, file)
    const read = await this.#parse(opened, file.name, { defersOcr: collection.ocr === 'auto' })
    if (read.unread.length > 0 && (await this.#deferToSlowQueue(read.unread.length))) return null
    if (findPending(this.#document) && (read.hasFiles || this.#document.unreadFiles))
      throw new Verdict('unsupported_type', 'A version with files inside is not supported. Delete the document, then attach the new file.')
    await this.#expand(read, { collection, file: opened, principal: context.caller })
    // OCR takes seconds per page. The text of the other pages is readable meanwhile.
    if (read.unread.length > 0 && read.text !== '') await this.#storeText(read)
    const whole = read.unread.length > 0 ? await this.#recognise(read, opened) : read
    return { ...whole, warnings: [...whole.warnings, ...warnOfUnread(read.mediaType, this.#document.unreadFiles)] }
  }

  /** Like `#read`, for audio, which a speech model transcribes. */
  async #hear(collection: CollectionRecord, file: FileRecord, context: CallContext): Promise<ParsedDocument | null> {
    const modelId = this.#document.transcriptionModel ?? collection.transcriptionModel
    if (!modelId)
      throw new Verdict(
        'unsupported_type',
        'The file is audio, and no speech model is named. Set `transcription_model` of the collection, then retry the document.',
      )
    if (file.sizeBytes > MAX_AUDIO_BYTES)
      throw new Verdict('limit_exceeded', `Speech models take at most ${sizeText(MAX_AUDIO_BYTES)}. Split the file, or compress it.`)
    if (await this.#deferToSlowQueue(1)) return null
    await this.#report({ stage: 'transcribing', progress: { done: 0, total: 1 } })
    const heard = await transcribeAudio(this.#deps, this.#document, file, modelId, context)
    await this.#report({ progress: { done: 1, total: 1 } }, { 'job.starts': 0, 'job.failures': 0, 'job.firstFailureAt': null })
    return heard
  }

  /** Moves the job to the slow queue, unless it has been there. Reports whether it was moved. */
  async #deferToSlowQueue(total: number): Promise<boolean> {
    const { job, organizationId } = this.#document
    if (job!.slowOrganizationId !== undefined) return false
    const slow = toSlowJob({ ...job!, organizationId }, this.#deps.clock.now())
    await this.#report({ progress: { done: 0, total } }, { job: { ...slow } })
    return true
  }

  /** Recognizes pages by OCR, and records each as progress. */
  async #recognise(read: ParsedDocument, file: Uint8Array | StreamedFile): Promise<ParsedDocument> {
    const total = read.unread.length
    const report = (done: number, isStored: boolean) =>
      this.#report({ progress: { done, total } }, isStored ? { 'job.starts': 0, 'job.failures': 0, 'job.firstFailureAt': null } : {})
    const { _id, organizationId } = this.#document
    const source = { _id, organizationId, fileId: this.#source.fileId }
    return recognisePages(this.#deps, source, { file, parsed: read }, report, () => this.#context(), this.#signal)
  }

  async #chunk(parsed: ParsedDocument, model: EmbeddingModel, context: CallContext): Promise<readonly DocumentChunk[]> {
    const all = await chunkDocument(parsed, {
      countTokens: (texts) => this.#deps.inference.countTokens(model.id, texts, context),
      targetTokens: Math.min(TARGET_TOKENS, model.maxTokens),
      capTokens: Math.min(CAP_TOKENS, model.maxTokens),
      overheadTokens: model.overheadTokens,
      signal: this.#signal,
    })
    // No query can search for a chunk of dots, lines or tatweel, but its vector is close to every question.
    const chunks = all.filter(({ text }) => hasWords(text)).map((chunk, ordinal) => ({ ...chunk, ordinal }))
    if (chunks.length === 0) throw new Verdict('no_text', 'The file has no text.')
    return chunks
  }

  async #reserve(vectors: number, principal: Principal): Promise<void> {
    // A live version retains its vectors until the swap.
    const all = this.#liveVectors + vectors
    const outcome = await count(this.#deps, countedVectors(this.#deps, this.#document), all, principal.plan.vectors)
    if (outcome === 'lost') throw new LeaseLost()
    if (outcome === 'over_limit') {
      const { vectors: used } = await readUsage(this.#deps.store, this.#document.organizationId)
      throw new Verdict(
        'storage_quota_exceeded',
        `The vector quota of the plan does not cover this document: ${used} of ${principal.plan.vectors} vectors used, ${vectors} needed. Delete documents, or split this one.`,
      )
    }
  }

  /**
   * Embeds, stores and indexes the missing chunks in the order of the text. Searches find the chunks of a first version
   * at once.
   */
  async #embed(model: EmbeddingModel, chunks: readonly DocumentChunk[], facts: Facts): Promise<void> {
    const { index } = this.#deps
    const document = this.#indexedDocument(facts)
    let details = 0
    const there = new Set(await index.ordinals(this.#indexName, document.documentId, document.generation))
    const missing = chunks.filter((chunk) => !there.has(chunk.ordinal))
    const chunksRead = (chunks: number) => (findReadSoFar(this.#document) ? { 'readSoFar.chunks': chunks } : {})
    await this.#report({ stage: 'embedding', progress: { done: there.size, total: chunks.length } }, chunksRead(there.size))
    for (let next = 0, overtaken = 0; next < missing.length; ) {
      this.#signal.throwIfAborted()
      // Embed, store, index and record one group together. A crash repeats at most this group.
      const group = toGroup(missing[next]!.ordinal)
      const batch = missing.slice(next, next + CHUNKS_PER_BLOB).filter(({ ordinal }) => toGroup(ordinal) === group)
      const texts = batch.map((chunk) => normaliseForEmbedding(toEmbeddingText(chunk)))
      const found = this.#document.embedding
      const embedded = await this.#embedBatch(model, missing.slice(next), texts).catch(async (error: unknown) => {
        // The key's rules have changed since they were read. Retry the batch under the new rules.
        if (error instanceof StalePrincipal && ++overtaken < MAX_OVERTAKEN) return null
        if (error instanceof EmbeddingStopped) await this.#noteStopped(error)
        if (!found || !isNotFound(error)) throw error
        // The hold expired while no worker ran, and billing has charged its work. The rest gets a new hold.
        await this.#write({ embedding: null })
        return null
      })
      if (!embedded) continue
      const { holdId, tokens } = embedded
      const indexed = batch.map((chunk, i) => this.#indexed(chunk, texts[i]!, embedded, i))
      await storeChunks(this.#deps, document, indexed)
      await index.put(document, indexed)
      next += batch.length
      // A step is done, so earlier starts and failures say nothing about the rest.
      await this.#report(
        { progress: { done: there.size + next, total: chunks.length } },
        {
          ...chunksRead(there.size + next),
          embedding: this.#embedding(holdId, tokens),
          'job.starts': 0,
          'job.failures': 0,
          'job.firstFailureAt': null,
        },
      )
      details = await this.#followDetails(details, facts)
    }
  }

  /** Updates chunks that are already searchable if the document's name or metadata has changed meanwhile. */
  async #followDetails(before: number, { language }: Facts): Promise<number> {
    const { details = 0 } = this.#document
    if (details !== before && findableGeneration(this.#document) === this.#generation)
      await indexDetails(this.#deps, { ...this.#document, language, liveGeneration: this.#generation })
    return details
  }

  /**
   * Embeds a batch under the key's current rules, because an ingestion may take hours. Returns the hold, the vectors
   * and token embeddings, and the tokens used under the hold.
   */
  async #embedBatch(model: EmbeddingModel, left: readonly DocumentChunk[], texts: readonly string[]) {
    const context = await this.#context()
    const embedding = this.#document.embedding ?? (await this.#open(model, left, context))
    const { holdId, tokens } = embedding
    const tokensBefore = usedTokens(embedding)
    const embedded = await this.#deps.inference.embedPassages({ holdId, modelId: model.id, texts, tokensBefore }, context)
    return { ...embedded, holdId, tokens: toInt(tokens + embedded.tokens) }
  }

  /** Counts the tokens of a stopped batch, because the vendor bills what was sent. */
  async #noteStopped({ tokens }: EmbeddingStopped): Promise<void> {
    const embedding = this.#document.embedding!
    await this.#write({ embedding: { ...embedding, stoppedTokens: toInt((embedding.stoppedTokens ?? 0) + tokens) } })
  }

  async #open(
    model: EmbeddingModel,
    chunks: readonly DocumentChunk[],
    context: CallContext,
  ): Promise<NonNullable<DocumentRecord['embedding']>> {
    const total = chunks.reduce((sum, chunk) => sum + chunk.tokens + model.overheadTokens, 0)
    const holdId = await this.#deps.inference.openEmbedding(model.id, total, context)
    const embedding = this.#embedding(holdId, 0)
    await this.#write({ embedding })
    return embedding
  }

  #embedding(holdId: string, tokens: number) {
    const { embedding, generation } = this.#document
    const stopped = embedding?.stoppedTokens && { stoppedTokens: embedding.stoppedTokens }
    return { holdId, tokens, ...stopped, generation, indexName: this.#indexName }
  }

  #indexed(chunk: DocumentChunk, text: string, { vectors, tokenStates }: EmbeddedChunks, index: number): IndexedChunk {
    const { ordinal, headingPath, context, pageStart, pageEnd, charStart, charEnd, language } = chunk
    const chunkId = buildChunkId(this.#document._id, this.#generation, ordinal)
    return {
      chunkId,
      ordinal,
      text: chunk.text,
      headingPath,
      context,
      pageStart,
      pageEnd,
      charStart,
      charEnd,
      language,
      vector: vectors[index]!,
      tokenStates: tokenStates?.[index] ?? null,
      words: words(text),
      grams: grams(text),
    }
  }

  #indexedDocument({ mediaType, language }: Facts): IndexedDocument {
    const { _id: documentId, organizationId, createdAt } = this.#document
    // Searches use the generation to exclude a version that is not live yet.
    const version = findPending(this.#document) && { generation: this.#generation }
    const facts = { media_type: mediaType, language, created_at: createdAt.getTime(), ...version }
    const attributes = documentAttributes(facts, this.#source)
    return { organizationId, collectionId: this.#indexName, documentId, generation: this.#generation, attributes }
  }

  /** Charges the tokens of the open hold. Billing has already charged a hold that expired. */
  async #close(tokens: number, context: CallContext): Promise<void> {
    await this.#deps.inference.closeEmbedding(this.#document.embedding!.holdId, tokens, context).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }

  /** Closes the hold of a superseded ingestion (another file or another model). Its used tokens are charged. */
  async #closeOther(context: CallContext): Promise<void> {
    const { embedding, generation, collectionId } = this.#document
    if (!embedding) return
    if ((embedding.generation ?? generation) === generation && (embedding.indexName ?? collectionId) === this.#indexName) return
    await this.#close(usedTokens(embedding), context)
    await this.#write({ embedding: null })
  }

  /** Deletes a superseded ingestion's chunks from the index, where they would displace candidates in searches. */
  async #hideOther(): Promise<void> {
    const { _id, collectionId, liveGeneration, generation } = this.#document
    if (liveGeneration === null && generation > 1) await deleteFromIndices(this.#deps, { collectionId, documentId: _id }, this.#generation)
  }

  async #goLive(
    facts: Pick<DocumentRecord, 'chunkCount' | 'language' | 'pageCount' | 'warnings'> & {
      readonly textSha256: string
      readonly sketch: string
    },
    { title, headings }: Outline,
  ): Promise<void> {
    const { chunkCount, sketch } = facts
    const { store, index, digests } = this.#deps
    const { collectionId, _id, generation } = this.#document
    const pending = findPending(this.#document)
    if (!pending) {
      await deleteFromIndices(this.#deps, { collectionId, documentId: _id }, this.#generation)
      await purgeIngestions(this.#deps, _id, 1, generation)
    }
    // A worker that lost its lease without noticing may have deleted chunks of this generation.
    const { length } = await index.ordinals(this.#indexName, _id, this.#generation)
    if (length !== chunkCount) throw new Error(`${_id} has ${length} of ${chunkCount} chunks in the index`)
    if ((await count(this.#deps, countedChunks(this.#deps, this.#document), chunkCount)) === 'lost') throw new LeaseLost()
    await storeSketch(this.#deps, this.#document, sketch)
    const live = {
      ...facts,
      warnings: facts.warnings.map((warning) => ({ ...warning })),
      status: 'ready',
      stage: null,
      progress: null,
      liveGeneration: this.#generation,
      outline: { title, headings },
    }
    for (;;) {
      // Name and metadata may have changed since the first chunk was indexed.
      const details = this.#document.details ?? null
      await indexDetails(this.#deps, { ...this.#document, ...facts, ...this.#source, liveGeneration: this.#generation })
      const isLive = pending
        ? await this.#swap(details, live)
        : await this.#writeIf({ details }, live, { $unset: { job: '', payer: '', readSoFar: '' } })
      digests.evict(collectionId)
      if (isLive) break
      const changed = await store.documents.findOne({ _id, 'job.lease': this.#document.job!.lease })
      if (!changed) throw new LeaseLost()
      this.#document = changed
    }
    if (pending) await tidyDocument(this.#deps, this.#document)
  }

  /** Replaces the live version by the new one in one write. The replaced data is deleted later. */
  async #swap(details: number | null, live: NonNullable<Update['$set']>): Promise<boolean> {
    const document = this.#document
    const { sha256, createdAt: versionAt } = document.replacement!
    const { version = 1, versions = [] } = document
    const former = {
      version,
      fileId: document.fileId,
      fileName: document.fileName,
      createdAt: document.versionAt ?? document.createdAt,
      replacedAt: this.#deps.clock.now(),
    }
    const { fileId, fileName, metadata } = this.#source
    const swapped = {
      ...live,
      fileId,
      fileName,
      metadata: { ...metadata },
      replacement: null,
      version: version + 1,
      versionAt,
      versions: [...versions, former].slice(-MAX_VERSIONS).map((one) => ({ ...one })),
      'job.kind': 'tidy',
    }
    const attachKey = bytesKey(document.collectionId, sha256)
    return this.#writeIf({ details }, { ...swapped, attachKey }, { $unset: { payer: '' } }).catch((error) => {
      if (!(error instanceof DuplicateKey)) throw error
      // The bytes were attached as another document meanwhile, which retains them.
      return this.#writeIf({ details }, swapped, { $unset: { payer: '', attachKey: '' } })
    })
  }

  /**
   * Records the failure and its reason. Deletes the document's chunks and counts, and ends its hold. In most cases, the
   * parsed text stays. If there is a live version, it stays unchanged, and only its replacement fails.
   */
  async fail(verdict: Verdict): Promise<void> {
    const error = { code: verdict.code, message: verdict.message }
    if (findPending(this.#document)) return this.#failReplacement(error)
    const storesText = !STORE_NOTHING.includes(error.code)
    await this.#write({ liveGeneration: null, chunkCount: 0 }, storesText ? {} : { $unset: { readSoFar: '' } })
    await this.#endHold()
    await dropUnread(this.#deps, this.#document, storesText)
    for (const counted of [countedChunks(this.#deps, this.#document), countedVectors(this.#deps, this.#document)]) {
      if ((await count(this.#deps, counted, 0)) === 'lost') throw new LeaseLost()
    }
    await this.#write({ status: 'failed', stage: null, progress: null, error }, { $unset: { job: '' } })
  }

  async #failReplacement(error: DocumentError): Promise<void> {
    const { store } = this.#deps
    const { _id, collectionId, liveGeneration, chunkCount, generation } = this.#document
    await this.#endHold()
    await deleteFromIndices(this.#deps, { collectionId, documentId: _id }, liveGeneration!)
    await purgeIngestions(this.#deps, _id, generationNumber(liveGeneration!) + 1, generation + 1)
    if ((await count(this.#deps, countedVectors(this.#deps, this.#document), chunkCount)) === 'lost') throw new LeaseLost()
    const failed = {
      'replacement.status': 'failed',
      'replacement.stage': null,
      'replacement.progress': null,
      'replacement.error': { ...error },
    }
    for (;;) {
      const details = this.#document.details ?? null
      // A change of name or metadata left the update of the chunks to this ingestion.
      await indexDetails(this.#deps, this.#document)
      if (await this.#writeIf({ details }, failed, { $unset: { job: '' } })) return
      const changed = await store.documents.findOne({ _id, 'job.lease': this.#document.job!.lease })
      if (!changed) throw new LeaseLost()
      this.#document = changed
    }
  }

  /** Ends the open hold. Charges only what was sent of batches that a limit or deadline of the service ended. */
  async #endHold(): Promise<void> {
    if (!this.#document.embedding) return
    await this.#close(this.#document.embedding.stoppedTokens ?? 0, await this.#context())
    await this.#write({ embedding: null })
  }
}

/** Returns the tokens charged to the embedding's hold so far. */
function usedTokens({ tokens, stoppedTokens = 0 }: NonNullable<DocumentRecord['embedding']>): number {
  return toInt(tokens + stoppedTokens)
}

/** Warns about embedded files that did not become documents. */
function warnOfUnread(mediaType: string, names: readonly string[] = []): ParsedDocument['warnings'] {
  if (names.length === 0) return []
  const named = names.slice(0, MAX_NAMES).join(', ')
  const message = `${names.length} files inside were not read: ${named}${names.length > MAX_NAMES ? ' and others' : ''}. Upload a readable copy of each one that you need.`
  return [{ code: mediaType === ZIP ? 'files_not_read' : 'attachments_not_read', message, pages: [] }]
}

function isNotFound(error: unknown): boolean {
  return error instanceof KisError && error.code === 'not_found'
}
