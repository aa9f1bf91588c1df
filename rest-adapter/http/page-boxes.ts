import type { Selected } from '../../schema/operations.ts'

/** Selected of a chunk when the caller asks for its boxes. */
export const PAGE_BOXES = 'pageBoxes { page width height boxes { x y width height start end } }'

type WithBoxes = Selected<'Chunk', typeof PAGE_BOXES>

/** The boxes of a chunk. They are left out of the answer unless they were asked for. */
export function toPageBoxes(chunk: { readonly pageBoxes?: WithBoxes['pageBoxes'] | undefined }): {
  readonly page_boxes?: WithBoxes['pageBoxes']
} {
  return chunk.pageBoxes === undefined ? {} : { page_boxes: chunk.pageBoxes }
}
