import { canonicalJson, RecordSum } from '../../../common/documents/record-sum.ts'
import type { ChunkIndex, IndexedDocument } from '../../ports/chunk-index.ts'
import { isGroupKept, type KeptGroup } from '../chunk-index/kept-passages.ts'
import { toTerms } from '../chunk-index/rebuild-index.ts'
import { type KnownGeneration, type KnownIndex, listIndices, listPages, type StillKnowledge } from './indexed-generations.ts'
import { type GenerationGroup, isKept, readGeneration } from './kept-generation.ts'

/** Passages of one write, the port's limit. With vectors, token states and terms these are some 5 MB. */
const MAX_PER_PUT = 256
/** Ingestions that are copied at once: Elasticsearch answers a write when searches see it, up to a second later. */
const MAX_AT_ONCE = 16
/** Passages that are compared at once: below the port's limit for token states. */
const COMPARED_AT_ONCE = 96
const MAX_NAMED = 5
/** Of a vector with itself, kept as bytes. */
const SAME_COSINE = 0.95

/** Told of the passages that have been copied or compared. */
type Moved = (passages: number) => void

/**
 * Fills an index with what that of the source has: passages with vectors, token states and attributes, and the terms of
 * this version. Embeds nothing. What is there with the same number of passages stays. Repeatable.
 * @throws {Error} the source's index has passages that are not kept beside it
 */
export async function copyIndex(from: StillKnowledge, to: ChunkIndex, moved: Moved): Promise<void> {
  for await (const index of listIndices(from)) {
    await to.createCollection({ organizationId: index.organizationId, collectionId: index.name, dimensions: index.dimensions })
    for await (const page of listPages(from, index)) {
      const there = await listThere(to, index, page)
      const missing = page.filter(({ documentId, generation, chunks }) => there.get(`${documentId} ${generation}`) !== chunks)
      await inParallel(missing, MAX_AT_ONCE, async (generation) => {
        if (await isMoved(from, generation)) await copyGeneration(from, to, generation, moved)
      })
    }
  }
}

/** What no search returns need not be kept: an ingestion that failed, or that a newer one has replaced. */
async function isMoved(from: StillKnowledge, generation: KnownGeneration): Promise<boolean> {
  return isLive(generation) || isKept(from, generation)
}

function isLive({ document, generation }: KnownGeneration): boolean {
  return document.listed && document.liveGeneration === generation
}

/** @throws {Error} documents that searches find have vectors in the index only */
export async function refuseUnkept(from: StillKnowledge): Promise<void> {
  const unkept: string[] = []
  for await (const index of listIndices(from))
    for await (const page of listPages(from, index))
      await inParallel(page.filter(isLive), MAX_AT_ONCE, async (generation) => {
        const ingestion = { documentId: generation.documentId, generation: generation.generation, collectionId: index.name }
        if (!(await isGroupKept(from, ingestion, 0))) unkept.push(generation.documentId)
      })
  if (unkept.length > 0)
    throw new Error(
      `The vectors of ${unkept.length} documents (${unkept.slice(0, MAX_NAMED).join(', ')}${unkept.length > MAX_NAMED ? ', …' : ''}) are in the index only, because ` +
        'a version before 0.2.0 made them. Start the source, upload the files of these documents again or delete them, then copy.',
    )
}

/** The passages that the index has of each ingestion between the ends of a page. */
async function listThere(to: ChunkIndex, { name }: KnownIndex, page: readonly KnownGeneration[]): Promise<ReadonlyMap<string, number>> {
  const there = new Map<string, number>()
  const first = page[0]
  if (!first) return there
  // Ids are ordered, so one that ends before the first has the others after it.
  for (let after = first.documentId.slice(0, -1); ; ) {
    const listed = await to.listGenerations(name, after, 1_000)
    for (const { documentId, generation, chunks } of listed) there.set(`${documentId} ${generation}`, chunks)
    const last = listed.at(-1)?.documentId
    if (listed.length < 1_000 || last === undefined || last >= page.at(-1)!.documentId) return there
    after = last
  }
}

async function copyGeneration(from: StillKnowledge, to: ChunkIndex, generation: KnownGeneration, moved: Moved): Promise<void> {
  let document: IndexedDocument | undefined
  let waiting: KeptGroup['passages'][number][] = []
  const put = async () => {
    if (!document || waiting.length === 0) return
    const terms = await toTerms(waiting)
    await to.put(
      document,
      waiting.map((passage, i) => ({ ...passage, ...terms[i]! })),
    )
    moved(waiting.length)
    waiting = []
  }
  for await (const group of readGeneration(from, generation)) {
    if (waiting.length + group.passages.length > MAX_PER_PUT) await put()
    document = group.document
    waiting.push(...group.passages)
  }
  await put()
}

/** What two indices have, as checksums of their passages with the token states. */
export interface IndexSums {
  readonly own: RecordSum
  readonly other: RecordSum
  /** Sentences about collections whose passages are not found by their own vectors; the first few. */
  readonly problems: readonly string[]
}

/** Compares the passages that the source keeps with those of a filled index. */
export async function compareIndices(from: StillKnowledge, to: ChunkIndex, moved: Moved): Promise<IndexSums> {
  const [own, other] = [new RecordSum(), new RecordSum()]
  const problems: string[] = []
  for await (const index of listIndices(from)) {
    let looked: GenerationGroup | undefined
    for await (const page of listPages(from, index))
      await inParallel(page, MAX_AT_ONCE, async (generation) => {
        if (!(await isMoved(from, generation))) return
        let groups: GenerationGroup[] = []
        const compare = async () => {
          for (const { document, passages } of groups) for (const passage of passages) addKept(own, document, passage)
          await addStored(other, to, groups)
          moved(groups.reduce((sum, { passages }) => sum + passages.length, 0))
          looked ??= groups[0]
          groups = []
        }
        for await (const group of readGeneration(from, generation)) {
          groups.push(group)
          if (groups.reduce((sum, { passages }) => sum + passages.length, 0) > COMPARED_AT_ONCE - group.passages.length) await compare()
        }
        await compare()
      })
    if (looked && problems.length < MAX_NAMED && !(await findsItself(to, looked)))
      problems.push(`the index ${index.name} does not find a passage by its own vector`)
  }
  return { own, other, problems }
}

function addKept(sum: RecordSum, document: IndexedDocument, passage: KeptGroup['passages'][number]): void {
  const { vector, tokenStates, context, ...stored } = passage
  const { organizationId, collectionId, documentId, generation } = document
  sum.add(canonicalJson({ ...stored, organizationId, collectionId, documentId, generation }), statesOf(tokenStates))
}

async function addStored(sum: RecordSum, to: ChunkIndex, groups: readonly GenerationGroup[]): Promise<void> {
  const ids = groups.flatMap(({ passages }) => passages.map(({ chunkId }) => chunkId))
  if (ids.length === 0) return
  const { collectionId } = groups[0]!.document
  const [stored, states] = await Promise.all([to.get(collectionId, ids), to.tokenStates(collectionId, ids)])
  for (const chunk of stored) sum.add(canonicalJson(chunk), statesOf(states.get(chunk.chunkId)))
}

function statesOf(states: Int8Array | null | undefined): Uint8Array {
  return states ? new Uint8Array(states.buffer, states.byteOffset, states.byteLength) : new Uint8Array()
}

async function findsItself(to: ChunkIndex, { document, passages }: GenerationGroup): Promise<boolean> {
  const query = { collectionId: document.collectionId, vector: passages[0]!.vector, words: [], grams: [], candidates: 10, filter: null }
  const found = await to.search(query, new AbortController().signal)
  return found.some(({ cosine }) => cosine !== null && cosine > SAME_COSINE)
}

/** Runs `work` for each item, at most `width` at once. After a failure no more begin. */
async function inParallel<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  let isOver = false
  const worker = async () => {
    try {
      for (const item of left) {
        if (isOver) return
        await work(item)
      }
    } catch (error) {
      isOver = true
      throw error
    }
  }
  const outcomes = await Promise.allSettled(Array.from({ length: Math.min(width, items.length) }, worker))
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
}

/** Deletes everything from an index: the documents that it was filled from have changed. */
export async function emptyIndex(index: ChunkIndex): Promise<void> {
  for (;;) {
    const listed = await index.listCollections('', 100)
    for (const { collectionId } of listed) await index.dropCollection(collectionId)
    if (listed.length === 0) return
  }
}
