import { canonicalJson, RecordSum } from '../../subgraphs/common/documents/record-sum.ts'
import type { DocumentCollection, StoredDocument } from '../../subgraphs/common/ports/document-store.ts'

type Documents = DocumentCollection<StoredDocument>
/** Told of the documents that have been looked at. */
type Moved = (documents: number) => void

/** The port's limit of a page. */
const MAX_PAGE = 1_000
const FIRST_PAGE = 32
/** Characters of JSON that a page should have. The next one is as long as the last ones let expect, and at most twice. */
const PAGE_CHARACTERS = 4 * 1024 * 1024

/** All documents in the order of their ids, by pages of some 4 MB. */
async function* listPages(documents: Documents): AsyncGenerator<readonly StoredDocument[]> {
  let limit = FIRST_PAGE
  for (let after = ''; ; ) {
    const page = await documents.find({ _id: { $gt: after } }, { sort: { _id: 1 }, limit })
    if (page.length > 0) yield page
    if (page.length < limit) return
    after = page.at(-1)!._id
    const characters = JSON.stringify(page).length
    limit = Math.max(1, Math.min(MAX_PAGE, limit * 2, Math.floor((PAGE_CHARACTERS / characters) * page.length)))
  }
}

/** Those of a page that a collection has, by id. */
async function findAll(documents: Documents, page: readonly StoredDocument[]): Promise<ReadonlyMap<string, StoredDocument>> {
  const found = await documents.find({ _id: { $in: page.map(({ _id }) => _id) } }, { limit: page.length })
  return new Map(found.map((document) => [document._id, document]))
}

/**
 * Deletes what `to` has and `from` has not, or has in another state. What `from` has is put there again by
 * `fillDocuments`: only then, because another document may have its unique key. `changing` runs before each deletion.
 */
export async function pruneDocuments(from: Documents, to: Documents, changing: () => Promise<void>): Promise<void> {
  for await (const page of listPages(to)) {
    const owns = await findAll(from, page)
    for (const document of page) {
      const own = owns.get(document._id)
      if (own && canonicalJson(own) === canonicalJson(document)) continue
      await changing()
      await to.findOneAndDelete({ _id: document._id })
    }
  }
}

/** Puts what `from` has and `to` has not into `to`. Repeatable. */
export async function fillDocuments(from: Documents, to: Documents, moved: Moved): Promise<void> {
  for await (const page of listPages(from)) {
    const there = await findAll(to, page)
    await to.insertMissing(page.filter(({ _id }) => !there.has(_id)))
    moved(page.length)
  }
}

/** Reads a whole collection for its checksum. */
export async function sumDocuments(documents: Documents, moved: Moved): Promise<RecordSum> {
  const sum = new RecordSum()
  for await (const page of listPages(documents)) {
    for (const document of page) sum.add(canonicalJson(document))
    moved(page.length)
  }
  return sum
}
