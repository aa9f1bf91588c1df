/** What one document may cost. The reasons are in the bombs that were measured: a DOCX of 18 KB can ask for 2 GB. */
export interface ParserLimits {
  /** Pages of a PDF. */
  readonly maxPages: number
  /** UTF-8 bytes of the extracted text: 20 MiB is about 7,000 pages of prose. */
  readonly maxTextBytes: number
  /** Paragraphs, rows and so on; each is an object in the service's own memory. */
  readonly maxBlocks: number
  /** Bytes that the entries of an archive that are read inflate to, counted while inflating because headers lie. */
  readonly maxInflatedBytes: number
  /** Inflated size over archive size, judged once `RATIO_FLOOR_BYTES` have come out. */
  readonly maxInflationRatio: number
  readonly maxArchiveEntries: number
  /** Elements that are held at once, of one table say; each takes some 300 bytes. */
  readonly maxXmlElements: number
  /** From handing over the bytes to the result. */
  readonly timeoutMs: number
  /** Resident memory of the child, where /proc tells it. */
  readonly maxRssBytes: number
}

const MIB = 1024 * 1024

export const DEFAULT_LIMITS: ParserLimits = {
  maxPages: 2_000,
  maxTextBytes: 20 * MIB,
  maxBlocks: 500_000,
  maxInflatedBytes: 200 * MIB,
  maxInflationRatio: 100,
  maxArchiveEntries: 2_000,
  maxXmlElements: 1_000_000,
  timeoutMs: 120_000,
  maxRssBytes: 700 * MIB,
}

/** Small archives of repetitive XML exceed 100:1 in good faith and harm nobody. */
export const RATIO_FLOOR_BYTES = 8 * MIB

/** V8's share of the child's memory; strings and inflate buffers beside it make up the rest of `maxRssBytes`. */
export const CHILD_HEAP_MB = 512

/** The largest result that a child may write: text in UTF-8, and at most about 100 bytes a block. */
export function maxResultBytes(limits: ParserLimits): number {
  return limits.maxTextBytes + limits.maxBlocks * 100 + 4 * MIB
}
