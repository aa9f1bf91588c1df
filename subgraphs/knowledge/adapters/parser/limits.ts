import { PAGE_CPU_SECONDS } from '../../domain/recognised-pages.ts'

/** Limits per document. They come from measured attacks: a DOCX of 18 KB can request 2 GB of memory. */
export interface ParserLimits {
  /** Maximum pages of a PDF. */
  readonly maxPages: number
  /** Maximum UTF-8 bytes of the extracted text. 20 MiB is about 7,000 pages of prose. */
  readonly maxTextBytes: number
  /** Maximum paragraphs, table rows and other blocks. Each is an object in the memory of the service. */
  readonly maxBlocks: number
  /**
   * Maximum inflated bytes of the archive entries that are read. They are counted during inflation, because headers may
   * be false.
   */
  readonly maxInflatedBytes: number
  /** Maximum inflated bytes per archive byte. The limit applies after `RATIO_THRESHOLD_BYTES`. */
  readonly maxInflationRatio: number
  readonly maxArchiveEntries: number
  /** Maximum bytes of an embedded file, which is in the service's memory while it is stored. */
  readonly maxInnerBytes: number
  /** Maximum XML elements in memory, such as those of one table. Each takes about 300 bytes. */
  readonly maxXmlElements: number
  /**
   * Maximum pixels of an image for OCR. Decoded, each takes up to five bytes. A page of A4 at 600 dpi has 35 million.
   */
  readonly maxPixels: number
  /** Maximum milliseconds from sending the bytes to the result. */
  readonly timeoutMs: number
  /** Maximum milliseconds of processor time per recognized page, on systems with /proc. Most pages take 3 to 10 s. */
  readonly pageCpuMs: number
  /** Maximum milliseconds per recognized page, on a core that others also use. */
  readonly pageTimeoutMs: number
  /** Maximum resident memory of the child in bytes, on systems with /proc. */
  readonly maxRssBytes: number
}

const MIB = 1024 * 1024

/** The limits in production. */
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

/**
 * Maximum lines of a document with stored positions: 2,000 pages of 100 lines. The rest of its text has no positions.
 */
export const MAX_PLACED_LINES = 200_000

/** Up to this size, the ratio is not limited: small, harmless archives of repetitive XML exceed 100:1. */
export const RATIO_THRESHOLD_BYTES = 8 * MIB

/** The heap of V8 in MB. Strings and inflate buffers take the rest of `maxRssBytes`. */
export const CHILD_HEAP_MB = 512

/**
 * Returns the maximum bytes of a child's result: the text in UTF-8, and about 100 bytes for each block and each line
 * with a position.
 */
export function maxResultBytes(limits: ParserLimits): number {
  return limits.maxTextBytes + (limits.maxBlocks + MAX_PLACED_LINES) * 100 + 4 * MIB
}
