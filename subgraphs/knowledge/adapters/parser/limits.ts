import { PAGE_CPU_SECONDS } from '../../domain/recognised-pages.ts'

/** The limits for one document. They come from measured attacks: a DOCX of 18 KB can ask for 2 GB of memory. */
export interface ParserLimits {
  /** Pages of a PDF. */
  readonly maxPages: number
  /** UTF-8 bytes of the extracted text. 20 MiB is about 7,000 pages of prose. */
  readonly maxTextBytes: number
  /** Paragraphs, table rows and other blocks. Each is an object in the memory of the service. */
  readonly maxBlocks: number
  /** Inflated bytes of the archive entries that are read. They are counted during inflation, because headers lie. */
  readonly maxInflatedBytes: number
  /** Inflated bytes per archive byte. The limit applies after `RATIO_FLOOR_BYTES`. */
  readonly maxInflationRatio: number
  readonly maxArchiveEntries: number
  /** Bytes of a file inside another. The service holds it while it is stored. */
  readonly maxInnerBytes: number
  /** XML elements in memory at once, such as those of one table. Each takes about 300 bytes. */
  readonly maxXmlElements: number
  /** Pixels of a picture that is recognised. Decoded, each takes up to five bytes. A page of A4 at 600 dpi has 35 million. */
  readonly maxPixels: number
  /** Milliseconds from handing over the bytes to the result. */
  readonly timeoutMs: number
  /** Milliseconds of processor time for one page that is recognised, on systems with /proc. Most pages take 3 to 10 s. */
  readonly pageCpuMs: number
  /** Milliseconds for one page that is recognised, on a core that others use too. */
  readonly pageTimeoutMs: number
  /** Resident memory of the child in bytes, on systems with /proc. */
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
  maxInnerBytes: 25 * MIB,
  maxXmlElements: 1_000_000,
  maxPixels: 40_000_000,
  timeoutMs: 120_000,
  pageCpuMs: PAGE_CPU_SECONDS * 1_000,
  pageTimeoutMs: 90_000,
  maxRssBytes: 700 * MIB,
}

/** The lines of a document whose places are kept: 2,000 pages of 100 lines. The rest of its text has no places. */
export const MAX_PLACED_LINES = 200_000

/** Small, harmless archives of repetitive XML exceed a ratio of 100:1. */
export const RATIO_THRESHOLD_BYTES = 8 * MIB

/** The heap of V8 in MB. Strings and inflate buffers take the rest of `maxRssBytes`. */
export const CHILD_HEAP_MB = 512

/**
 * Returns the largest result that a child may write, in bytes: the text in UTF-8, and about 100 bytes for each block and
 * each placed line.
 */
export function maxResultBytes(limits: ParserLimits): number {
  return limits.maxTextBytes + (limits.maxBlocks + MAX_PLACED_LINES) * 100 + 4 * MIB
}
