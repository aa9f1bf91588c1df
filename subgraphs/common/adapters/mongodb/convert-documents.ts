import { isDeepStrictEqual } from 'node:util'
import { type AnyBulkWriteOperation, BSON, type Collection, type Db } from 'mongodb'
import type { AnyDocument } from '../documents/kinds.ts'
import { type Stored, toStored } from '../documents/stored-value.ts'
import { toBson } from './bson.ts'

/** Documents in memory at once. A document has at most 16 MiB. */
const PAGE = 256
const PAGE_BYTES = 8 * 1024 ** 2
/** How often a document is read again that others change meanwhile. */
const MAX_ROUNDS = 20

/**
 * Converts all documents of a kind, in the order of their ids, while others read and change them. `report` gets the
 * number of documents of each page.
 * @throws {Error} others change a document faster than it can be converted
 */
export async function convertDocuments(
  db: Db,
  kind: string,
  convert: (document: AnyDocument) => AnyDocument,
  report: (count: number) => Promise<void>,
): Promise<void> {
  const documents = db.collection<AnyDocument>(kind)
  let page: AnyDocument[] = []
  let bytes = 0
  const flush = async () => {
    await convertPage(documents, page, convert)
    await report(page.length)
    page = []
    bytes = 0
  }
  for await (const document of documents.find({}, { sort: { _id: 1 }, batchSize: PAGE })) {
    page.push(document as AnyDocument)
    bytes += BSON.calculateObjectSize(document)
    if (page.length === PAGE || bytes >= PAGE_BYTES) await flush()
  }
  if (page.length > 0) await flush()
}

async function convertPage(
  documents: Collection<AnyDocument>,
  page: readonly AnyDocument[],
  convert: (document: AnyDocument) => AnyDocument,
): Promise<void> {
  let left = page
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const changes = left.flatMap((document) => changeOf(document, convert(document), documents.collectionName))
    if (changes.length === 0) return
    const { matchedCount } = await documents.bulkWrite(changes, { ordered: false })
    if (matchedCount === changes.length) return
    // Others have changed some meanwhile. Those that were converted stay as they are in the next round.
    left = (await documents.find({ _id: { $in: left.map(({ _id }) => _id) } }).toArray()) as AnyDocument[]
  }
  throw new Error(`documents of the kind ${documents.collectionName} change faster than they can be converted`)
}

/** Changes only what differs, and only if the document still is what was read. */
function changeOf(before: AnyDocument, after: AnyDocument, kind: string): AnyBulkWriteOperation<AnyDocument>[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const differing = names.filter((name) => !isDeepStrictEqual(before[name], after[name]))
  if (differing.length === 0) return []
  const converted = toBson(toStored(after, kind) as Stored) as AnyDocument
  const set = Object.fromEntries(differing.filter((name) => name in after).map((name) => [name, converted[name]]))
  const unset = Object.fromEntries(differing.filter((name) => !(name in after)).map((name) => [name, '' as const]))
  const same = Object.fromEntries(Object.entries(before).map(([name, value]) => [name, { $eq: value }]))
  const update = { ...(Object.keys(set).length > 0 && { $set: set }), ...(Object.keys(unset).length > 0 && { $unset: unset }) }
  return [{ updateOne: { filter: same as never, update: update as never } }]
}
