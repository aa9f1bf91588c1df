import type { Selected } from '../../schema/operations.ts'

/** Selected for each chunk when the caller requests its boxes. */
export const PAGE_BOXES = 'pageBoxes { page width height boxes { x y width height start end } }'

type WithBoxes = Selected<'Chunk', typeof PAGE_BOXES>

/** Returns the boxes of a chunk, or nothing unless they were requested. */
export function toPageBoxes(chunk: { readonly pageBoxes?: WithBoxes['pageBoxes'] | undefined }): {
  readonly page_boxes?: WithBoxes['pageBoxes']
} {
  return chunk.pageBoxes === undefined ? {} : { page_boxes: chunk.pageBoxes }
}
