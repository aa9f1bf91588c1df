import type { Box, Layout } from '../../ports/document-parser.ts'

/** Maximum boxes of a part of a text. If there are more lines, neighboring lines share a box. */
export const MAX_BOXES = 64

/** Characters per group: about 250 lines, stored in about 10 KB. A chunk reads one or two groups. */
export const GROUP_CHARS = 16_384

/** The boxes of a part of a text on one page. */
export interface PageBoxes {
  readonly page: number
  /** The size of the page, in the unit of the boxes. */
  readonly width: number
  readonly height: number
  /** In the order of the text. `start` and `end` are UTF-16 offsets of the boxed text from the start of the part. */
  readonly boxes: readonly (Box & { readonly start: number; readonly end: number })[]
}

/** The lines that overlap one group of `GROUP_CHARS` characters, and the sizes of their pages. Stored as JSON. */
export interface LineGroup {
  readonly pages: readonly (readonly [page: number, width: number, height: number])[]
  readonly lines: readonly PackedLine[]
}

type PackedLine = readonly [page: number, charStart: number, charEnd: number, x: number, y: number, width: number, height: number]

/** Returns the number of the group that contains a character. */
export function toLineGroup(offset: number): number {
  return Math.floor(offset / GROUP_CHARS)
}

/** Groups the lines of a document by group number. */
export function groupLines({ pages, lines }: Layout): ReadonlyMap<number, LineGroup> {
  const sizes = new Map(pages.map(({ page, width, height }) => [page, [page, width, height] as const]))
  const groups = new Map<number, { readonly pages: Map<number, readonly [number, number, number]>; readonly lines: PackedLine[] }>()
  for (const { page, charStart, charEnd, x, y, width, height } of lines) {
    const size = sizes.get(page)
    if (!size) continue
    for (let number = toLineGroup(charStart); number <= toLineGroup(charEnd - 1); number += 1) {
      const group = groups.get(number) ?? { pages: new Map<number, readonly [number, number, number]>(), lines: [] as PackedLine[] }
      group.lines.push([page, charStart, charEnd, x, y, width, height])
      group.pages.set(page, size)
      groups.set(number, group)
    }
  }
  return new Map([...groups].map(([number, group]) => [number, { pages: [...group.pages.values()], lines: group.lines }]))
}

/**
 * Returns the boxes of the characters from `from` to before `to`, page by page. `groups` must cover these characters.
 */
export function findPageBoxes(groups: readonly LineGroup[], from: number, to: number): readonly PageBoxes[] {
  const lines = new Map<number, PackedLine>()
  for (const group of groups) for (const line of group.lines) if (line[1] < to && line[2] > from) lines.set(line[1], line)
  const share = Math.ceil(lines.size / MAX_BOXES)
  const sizes = new Map(groups.flatMap(({ pages }) => pages.map((size) => [size[0], size])))
  const found: PageBoxes[] = []
  let left = MAX_BOXES
  for (const [page, own] of Map.groupBy(lines.values(), ([page]) => page)) {
    const [, width, height] = sizes.get(page)!
    const boxes: PageBoxes['boxes'][number][] = []
    for (let at = 0; at < own.length && left > 0; at += share, left -= 1) boxes.push(mergeLines(own.slice(at, at + share), from, to))
    if (boxes.length > 0) found.push({ page, width, height, boxes })
  }
  return found
}

function mergeLines(lines: readonly PackedLine[], from: number, to: number): PageBoxes['boxes'][number] {
  const x = Math.min(...lines.map((line) => line[3]))
  const y = Math.min(...lines.map((line) => line[4]))
  const right = Math.max(...lines.map((line) => line[3] + line[5]))
  const bottom = Math.max(...lines.map((line) => line[4] + line[6]))
  const start = Math.max(lines[0]![1], from) - from
  const end = Math.min(lines.at(-1)![2], to) - from
  return { x, y, width: toTenth(right - x), height: toTenth(bottom - y), start, end }
}

function toTenth(length: number): number {
  return Math.round(length * 10) / 10
}
