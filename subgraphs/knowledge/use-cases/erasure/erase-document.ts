import { createHash } from 'node:crypto'
import type { ErasedStep, ErasureTask, Found } from '../../../common/erasure/erasing.ts'
import type { DocumentRecord, EvaluatedQuestion, EvaluationRecord, FileRecord, GoldQuestionRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { hideAndDelete } from '../documents/delete-now.ts'
import { dropFile } from '../files/files.ts'

const PAGE = 100
/** Maximum documents unpacked from one document. An archive has fewer. */
const MAX_PARTS = 10_000

/** Data for erasing a document whose record may already be gone. */
interface Notes {
  /** Null: the document was deleted before. */
  readonly collectionId: string | null
  readonly fileIds: readonly string[]
  /**
   * Digests of the names of the document, its former versions and its files. Plain names of thousands of unpacked files
   * would exceed what billing stores, and would reveal their subjects.
   */
  readonly names: readonly string[]
}

/**
 * Finds all data of a document: documents unpacked from it, its files and those of former versions, its web sources,
 * and the gold questions of its collection that expect it, with the evaluations that used them.
 */
export async function findDocumentEverywhere(deps: Deps, { organizationId, documentId }: ErasureTask): Promise<Found> {
  const { store } = deps
  const documents = await findWithParts(deps, organizationId, documentId!)
  const collectionId = documents[0]?.collectionId ?? null
  const fileIds = [...new Set(documents.flatMap(filesOf))]
  const files: FileRecord[] = []
  for (const fileId of fileIds) {
    const file = await store.files.findOne({ _id: fileId, organizationId })
    if (file) files.push(file)
  }
  const names = [...new Set([...documents.flatMap(namesOf), ...files.map(({ name }) => name)].map(digestOf))]
  const documentIds = documents.length === 0 ? [documentId!] : documents.map(({ _id }) => _id)
  const notes: Notes = { collectionId, fileIds, names }
  return {
    found: {
      documents: documents.length,
      passages: documents.reduce((sum, { chunkCount }) => sum + chunkCount, 0),
      files: files.length,
      web_addresses: (await findSources(deps, notes, documentIds)).length,
      gold_questions: (await findQuestions(deps, notes)).length,
      evaluations: (await findEvaluations(deps, notes)).length,
    },
    documentIds,
    notes: JSON.stringify(notes),
  }
}

/** Erases what `findDocumentEverywhere` has found. Files that other documents use stay. Can be repeated. */
export async function eraseDocumentEverywhere(deps: Deps, task: ErasureTask, signal: AbortSignal): Promise<ErasedStep> {
  const { store } = deps
  const { organizationId, documentIds } = task
  const notes: Notes = JSON.parse(task.notes!)
  let isEmpty = true
  // Delete the sources first, so that the document is not fetched again.
  for (const { _id } of await findSources(deps, notes, documentIds)) {
    isEmpty = false
    await store.sources.findOneAndDelete({ _id })
  }
  for (const _id of documentIds) {
    signal.throwIfAborted()
    const document = await store.documents.findOne({ _id, organizationId })
    if (!document) continue
    // Workers continue the deletions that this call does not complete.
    isEmpty = false
    if (document.listed) await hideAndDelete(deps, document)
  }
  for (const { _id } of await findQuestions(deps, notes)) {
    isEmpty = false
    await store.goldQuestions.findOneAndDelete({ _id })
  }
  for (const { _id, job } of await findEvaluations(deps, notes)) {
    isEmpty = false
    // A running evaluation writes until it has ended.
    if (!job) await store.evaluations.findOneAndDelete({ _id })
  }
  let shared = 0
  if (isEmpty)
    for (const fileId of notes.fileIds) {
      signal.throwIfAborted()
      if (!(await dropFile(deps, organizationId, fileId))) shared++
    }
  const reason = 'Other documents use them. They are deleted when you delete these documents and the files.'
  return { isEmpty, kept: shared > 0 ? [{ kind: 'files', count: shared, reason }] : [] }
}

/** Returns a document of the organization and the documents unpacked from it. Empty: the document is gone. */
async function findWithParts({ store }: Deps, organizationId: string, documentId: string): Promise<readonly DocumentRecord[]> {
  const first = await store.documents.findOne({ _id: documentId, organizationId })
  const found = first ? [first] : []
  for (let i = 0; i < found.length; i++) {
    for (let after = ''; ; ) {
      const parts = await store.documents.find({ parentId: found[i]!._id, listed: true, _id: { $gt: after } }, { limit: PAGE })
      found.push(...parts.slice(0, MAX_PARTS - found.length))
      if (parts.length < PAGE || found.length >= MAX_PARTS) break
      after = parts.at(-1)!._id
    }
  }
  return found
}

function filesOf({ fileId, replacement, versions = [] }: DocumentRecord): readonly string[] {
  return [fileId, ...(replacement ? [replacement.fileId] : []), ...versions.map((version) => version.fileId)]
}

function namesOf({ fileName, replacement, versions = [] }: DocumentRecord): readonly string[] {
  return [fileName, ...(replacement ? [replacement.fileName] : []), ...versions.map((version) => version.fileName)]
}

async function findSources({ store }: Deps, { collectionId }: Notes, documentIds: readonly string[]) {
  if (collectionId === null) return []
  return findAll(
    (after) => store.sources.find({ collectionId, _id: { $gt: after } }, { limit: PAGE }),
    (source) => source.documentId !== null && documentIds.includes(source.documentId),
  )
}

async function findQuestions({ store }: Deps, { collectionId, names }: Notes): Promise<readonly GoldQuestionRecord[]> {
  if (collectionId === null) return []
  return findAll(
    (after) => store.goldQuestions.find({ collectionId, _id: { $gt: after } }, { limit: PAGE }),
    (question) => expects(question, names),
  )
}

async function findEvaluations({ store }: Deps, { collectionId, names }: Notes): Promise<readonly EvaluationRecord[]> {
  if (collectionId === null) return []
  return findAll(
    (after) => store.evaluations.find({ collectionId, _id: { $gt: after } }, { limit: PAGE }),
    ({ questions }) => (JSON.parse(questions) as readonly EvaluatedQuestion[]).some((question) => expects(question, names)),
  )
}

function expects({ expected }: Pick<EvaluatedQuestion, 'expected'>, names: readonly string[]): boolean {
  return expected.some(({ fileName }) => fileName !== null && names.includes(digestOf(fileName)))
}

/** 96 bits of the SHA-256. */
function digestOf(name: string): string {
  return createHash('sha256').update(name).digest('base64url').slice(0, 16)
}

async function findAll<T extends { readonly _id: string }>(
  readPage: (after: string) => Promise<readonly T[]>,
  isWanted: (record: T) => boolean,
): Promise<readonly T[]> {
  const found: T[] = []
  for (let after = ''; ; ) {
    const page = await readPage(after)
    found.push(...page.filter(isWanted))
    if (page.length < PAGE) return found
    after = page.at(-1)!._id
  }
}
