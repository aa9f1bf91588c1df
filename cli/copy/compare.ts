import type { RecordSum } from '../../subgraphs/common/documents/record-sum.ts'
import { compareIndex, sumBlobs } from '../../subgraphs/knowledge/stored.ts'
import { sumDocuments } from './documents.ts'
import type { Progress } from './progress.ts'
import { listCollections, type Stores } from './stores.ts'

/** One kind of record, counted and summed on both sides. */
export interface Compared {
  readonly what: string
  readonly own: Pick<RecordSum, 'count' | 'text'>
  readonly other: Pick<RecordSum, 'count' | 'text'>
}

export interface Comparison {
  readonly rows: readonly Compared[]
  /** Sentences about what no checksum shows. */
  readonly problems: readonly string[]
}

/** Reads everything on both sides. Vectors are compared by whether the target finds a passage by its own. */
export async function compareStores(from: Stores, to: Stores, progress: Progress): Promise<Comparison> {
  const rows: Compared[] = []
  const others = new Map(listCollections(to).map((each) => [`${each.subgraph} ${each.name}`, each.collection]))
  await progress.of('compared documents', async (moved) => {
    for (const { subgraph, name, collection } of listCollections(from)) {
      const what = `${subgraph} ${name}`
      const [own, other] = await Promise.all([sumDocuments(collection, moved), sumDocuments(others.get(what)!, () => undefined)])
      rows.push({ what, own, other })
    }
  })
  const [own, other] = await progress.of('compared contents', (moved) =>
    Promise.all([sumBlobs(from.knowledge.blobs, moved), sumBlobs(to.knowledge.blobs, () => undefined)]),
  )
  rows.push({ what: 'contents of files and texts', own, other })
  const index = await progress.of('compared passages', (moved) => compareIndex(from.knowledge, to.knowledge, moved))
  rows.push({ what: 'passages of the index', own: index.own, other: index.other })
  return { rows, problems: index.problems }
}

export function isEqual({ own, other }: Compared): boolean {
  return own.count === other.count && own.text === other.text
}

/** The comparison as lines of a table. Kinds without any records are left out. */
export function toTable(rows: readonly Compared[]): readonly string[] {
  const shown = rows.filter(({ own, other }) => own.count + other.count > 0)
  const cells = shown.map((row) => {
    const { what, own, other } = row
    return [what, String(own.count), String(other.count), own.text, isEqual(row) ? 'equal' : `DIFFERENT: ${other.text}`]
  })
  const all = [['what', 'source', 'target', 'checksum', ''], ...cells]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((line) => line[column]!.length)))
  return all.map(([what, own, other, sum, verdict]) =>
    `${what!.padEnd(widths[0]!)}  ${own!.padStart(widths[1]!)}  ${other!.padStart(widths[2]!)}  ${sum!.padEnd(widths[3]!)}  ${verdict}`.trimEnd(),
  )
}
