import type { Box } from '../../../ports/document-parser.ts'
import type { Area } from './rows.ts'

/** The places after the decimal point. A tenth of a point is less than a pixel on any screen. */
const STEPS_PER_POINT = 10

/**
 * Returns an area of a frame as a box of the page: turned back, and cut at the edges of the page. Returns null for text at
 * other angles than quarter turns, and for text beside the page.
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

export function rounded(length: number): number {
  return Math.round(length * STEPS_PER_POINT) / STEPS_PER_POINT
}
