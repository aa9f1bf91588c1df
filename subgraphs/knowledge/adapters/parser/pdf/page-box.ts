import type { Box } from '../../../ports/document-parser.ts'
import type { Area } from './rows.ts'

/** A tenth of a point is less than a pixel on any screen. */
const STEPS_PER_POINT = 10

/**
 * Converts an area of a frame to a box of the page: rotated back and clipped to the page. Returns null for text at
 * angles other than quarter turns, and for text outside the page.
 */
export function toPageBox(
  { x0, x1, y0, y1 }: Area,
  turn: number,
  { width, height }: { readonly width: number; readonly height: number },
): Box | null {
  const edges = [[x0, y0, x1, y1] as const, [-y1, x0, -y0, x1] as const, [-x1, -y1, -x0, -y0] as const, [y0, -x1, y1, -x0] as const][turn]
  if (!edges) return null
  const [left, top, right, bottom] = [cut(edges[0], width), cut(edges[1], height), cut(edges[2], width), cut(edges[3], height)]
  return right > left && bottom > top ? { x: left, y: top, width: rounded(right - left), height: rounded(bottom - top) } : null
}

function cut(coordinate: number, most: number): number {
  return rounded(Math.min(Math.max(coordinate, 0), most))
}

/** Rounds a coordinate or a size of a page, in points, to the precision of boxes. */
export function rounded(length: number): number {
  return Math.round(length * STEPS_PER_POINT) / STEPS_PER_POINT
}
