import { NotFound } from '../../common/errors.ts'
import type { BillingContext } from '../ports/billing.ts'
import type { ChunkQuery, CollectionDescription, FoundChunk, Knowledge } from '../ports/knowledge.ts'

/** Collections with passages that a test writes. A search gives all whose text has a word of the query. */
export class FakeKnowledge implements Knowledge {
  readonly collections = new Map<
    string,
    { readonly organizationId: string; readonly description: CollectionDescription; readonly texts: readonly string[] }
  >()
  readonly queries: ChunkQuery[] = []
  /** Nano-USD for each search. */
  cost = 10n

  /** By id. */
  readonly files = new Map<string, Uint8Array>()

  async readFile(id: string, param: string) {
    const bytes = this.files.get(id)
    if (!bytes) throw new NotFound('file', id, param)
    return bytes
  }

  add(id: string, texts: readonly string[], organizationId = 'org_a'): void {
    const contents = {
      ...{ documentCount: texts.length, examinedCount: texts.length, languages: [{ language: 'en', documentCount: texts.length }] },
      ...{ titles: [{ title: null, fileName: `${id}_0.txt` }], headings: [], oldestAt: null, newestAt: null },
    }
    const description = { id, code: id, name: `The ${id}`, description: null, chunkCount: texts.length, contents }
    this.collections.set(id, { organizationId, description, texts })
  }

  async describe(ids: readonly string[], { caller }: BillingContext) {
    return ids.flatMap((id) => {
      const found = this.collections.get(id)
      return found?.organizationId === caller.organizationId ? [found.description] : []
    })
  }

  async search(query: ChunkQuery, _context: BillingContext) {
    this.queries.push(query)
    const words = query.query.toLowerCase().split(/\W+/)
    const chunks = (this.collections.get(query.collectionId)?.texts ?? []).flatMap((text, i): FoundChunk[] => {
      if (!words.some((word) => word !== '' && text.toLowerCase().includes(word))) return []
      const position = { headingPath: [], pageStart: 1, pageEnd: 1, charStart: 0, charEnd: text.length, score: 1 }
      const id = `${query.collectionId}_${i}`
      return [
        {
          chunkId: `chunk_${id}`,
          collectionId: query.collectionId,
          documentId: `doc_${id}`,
          fileId: `file_${id}`,
          fileName: `${id}.txt`,
          text,
          ...position,
        },
      ]
    })
    return { passages: chunks.slice(0, query.limit), cost: this.cost }
  }
}
