import { KisError } from '../../../common/errors.ts'
import { type DocumentRecord, readableGeneration } from '../../domain/records.ts'
import { MARK_CHARS, startsInPair, type TextMap } from '../../domain/text/text-map.ts'
import { textKey, textMapKey } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'

/** Maximum characters per result: about 1 MB of JSON in Arabic. */
const MAX_CHARS = 262_144
/** Maximum bytes of these characters, including the text up to the next marks on both sides. */
const MAX_BYTES = 4 * (MAX_CHARS + 2 * MARK_CHARS)

/** The requested part of a text. */
export interface TextRange {
  readonly pageStart?: number | null
  readonly pageEnd?: number | null
  readonly offset?: number | null
  readonly length: number
}

/** Part of a document's text. Offsets are UTF-16 code units of the whole text. */
interface TextPart {
  readonly text: string
  readonly charStart: number
  readonly charEnd: number
  readonly totalChars: number
  /** Offset of the rest of the requested range. Null: nothing is left. */
  readonly nextOffset: number | null
  /** Pages with text in this part. Empty in formats without pages, and for documents of earlier versions. */
  readonly pages: readonly { readonly page: number; readonly charStart: number; readonly charEnd: number }[]
}

/**
 * Reads part of a document's extracted text: from an offset or from the start of a page, to the end of a page or of the
 * text, and at most `length` characters. Reads the live version or, without one, what has been read so far, even after
 * a failure. Returns null if there is no text.
 * @throws {KisError} `integer_below_min_value` or `integer_above_max_value` if a number is out of range.
 * @throws {KisError} `invalid_request` if the range uses pages that are unknown, or both a page and an offset.
 */
export async function readText({ blobs }: Pick<Deps, 'blobs'>, document: DocumentRecord, range: TextRange): Promise<TextPart | null> {
  const { _id } = document
  const generation = readableGeneration(document)
  const { pageStart, pageEnd, offset, length } = range
  for (const [param, value, least] of [
    ['offset', offset, 0],
    ['pageStart', pageStart, 1],
    ['pageEnd', pageEnd, pageStart ?? 1],
    ['length', length, 1],
  ] as const) {
    if (value == null || value >= least) continue
    throw new KisError('integer_below_min_value', `\`${param}\` is at least ${least}.`, { param })
  }
  if (length > MAX_CHARS)
    throw new KisError('integer_above_max_value', `One response has at most ${MAX_CHARS} characters. Send the rest's \`offset\` next.`, {
      param: 'length',
    })
  if (pageStart != null && offset != null)
    throw new KisError('invalid_request', 'Read from a page or from an offset, not from both.', { param: 'pageStart' })
  if (generation === null) return null

  const stored = await blobs.get(textMapKey(_id, generation))
  const map = stored && parseMap(stored)
  const { pages = null } = map ?? {}
  if (pageStart != null || pageEnd != null) {
    if (!pages) {
      const message = 'The document has no known pages: its format has none, or an earlier version read it. Send `offset` and `length`.'
      throw new KisError('invalid_request', message, { param: pageStart == null ? 'pageEnd' : 'pageStart' })
    }
    if (pageStart != null && pageStart > pages.length)
      throw new KisError('integer_above_max_value', `The document has ${pages.length} pages.`, { param: 'pageStart' })
  }
  const from = pageStart == null ? (offset ?? 0) : pages![pageStart - 1]!
  const until = (pageEnd == null ? undefined : pages?.[pageEnd]) ?? Number.POSITIVE_INFINITY
  const part = await readPart(blobs, textKey(_id, generation), map, from, Math.min(until, from + length))
  // The document was replaced or deleted after its record was read.
  if (!part) return null
  const { text, total } = part
  const charEnd = part.start + text.length
  return {
    text,
    charStart: part.start,
    charEnd,
    totalChars: total,
    nextOffset: charEnd < Math.min(until, total) ? charEnd : null,
    pages: (pages ?? []).flatMap((start, i) => {
      const range = { charStart: Math.max(start, part.start), charEnd: Math.min(pages![i + 1] ?? total, charEnd) }
      return range.charStart < range.charEnd ? [{ page: i + 1, ...range }] : []
    }),
  }
}

/** Returns null for a corrupted map. The text is readable without it, but not by pages. */
function parseMap(bytes: Uint8Array): TextMap | null {
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as TextMap
  } catch {
    return null
  }
}

/** Reads the characters of a range. The range ends at the text's end and never splits a character. */
async function readPart(blobs: Deps['blobs'], key: string, map: TextMap | null, from: number, until: number) {
  const first = map?.marks.findLast(([chars]) => chars <= from) ?? [0, 0]
  const last = map?.marks.find(([chars]) => chars >= until)
  const bytes = await blobs.get(key, map ? { offset: first[1], length: last ? last[1] - first[1] : MAX_BYTES } : undefined)
  if (!bytes) return null
  const read = Buffer.from(bytes).toString()
  const total = map?.length ?? read.length
  const inside = (at: number) => Math.min(at, total) - first[0]
  const start = inside(from) + (startsInPair(read, inside(from)) ? 1 : 0)
  // A single character is returned whole, even if fewer code units were requested.
  const end = inside(until) + (startsInPair(read, inside(until)) ? 1 : 0)
  return { text: read.slice(start, end), start: start + first[0], total }
}
