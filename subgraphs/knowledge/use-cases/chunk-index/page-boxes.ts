import { findPageBoxes, groupLines, type LineGroup, type PageBoxes, toLineGroup } from '../../domain/text/page-boxes.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import type { ParsedDocument } from '../../ports/document-parser.ts'
import type { Deps } from '../deps.ts'
import { linesKey } from './stored-chunks.ts'

/** Keeps where the pages show the text of an ingestion. Repeatable. */
export async function storeLines(
  { blobs }: Pick<Deps, 'blobs'>,
  { documentId, generation }: Pick<StoredChunk, 'documentId' | 'generation'>,
  { layout }: Pick<ParsedDocument, 'layout'>,
): Promise<void> {
  if (!layout) return
  for (const [number, group] of groupLines(layout))
    await blobs.put(linesKey(documentId, generation, number), Buffer.from(JSON.stringify(group)))
}

/**
 * Finds where the pages show a passage. Returns null where that is not known: in formats without pages that look the same
 * everywhere, and in documents of earlier versions.
 */
export async function readPageBoxes(
  { blobs }: Pick<Deps, 'blobs'>,
  { documentId, generation, charStart, charEnd }: Pick<StoredChunk, 'documentId' | 'generation' | 'charStart' | 'charEnd'>,
): Promise<readonly PageBoxes[] | null> {
  const groups: LineGroup[] = []
  for (let number = toLineGroup(charStart); number <= toLineGroup(charEnd - 1); number += 1) {
    const group = parseGroup(await blobs.get(linesKey(documentId, generation, number)))
    if (group) groups.push(group)
  }
  const found = findPageBoxes(groups, charStart, charEnd)
  return found.length > 0 ? found : null
}

/** Returns null for damaged lines: the passage can be read without them. */
function parseGroup(bytes: Uint8Array | null): LineGroup | null {
  try {
    return bytes && (JSON.parse(Buffer.from(bytes).toString()) as LineGroup)
  } catch {
    return null
  }
}
