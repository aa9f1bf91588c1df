/** The part of the standard `WebAssembly` object used here. Its types come only with the DOM library. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Functions }
}

/**
 * What each does is in `kernels.wat`. Every argument is a place in the memory or a number of items, but for those of
 * arithmetic: weights, slopes, units and bounds.
 */
interface Functions {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number }
  readonly dots: (query: number, vectors: number, count: number, length: number, out: number) => void
  readonly sums: (codes: number, tables: number, groups: number, blocks: number, out: number) => void
  readonly codeSums: (codes: number, count: number, length: number, tables: number, out: number) => void
  readonly norms: (lengths: number, count: number, flat: number, slope: number, norms: number, single: number) => void
  readonly score: (list: number, end: number, passage: number, weight: number, norms: number, single: number, scores: number) => void
  readonly scoreReached: (
    list: number,
    starts: number,
    reached: number,
    ranges: number,
    weight: number,
    norms: number,
    single: number,
    scores: number,
  ) => void
  readonly scoreDense: (counts: number, reached: number, ranges: number, weight: number, norms: number, scores: number) => void
  readonly atLeast: (values: number, count: number, least: number, out: number) => number
  readonly estimates: (sums: number, scales: number, count: number, unit: number, least: number, centre: number, out: number) => void
  readonly reaching: (scores: number, ranges: number, least: number, out: number) => void
}

/**
 * The loops of a search in WebAssembly, whose 128-bit SIMD is the only vector arithmetic in Node. The source of these
 * bytes is `kernels.wat`.
 */
export const KERNELS = Buffer.from(
  'AGFzbQEAAAABUAlgBX9/f39/AGAGf399fX9/AGAHf39/fX9/fwBgCH9/f399f39/AGAEe3t/fwBgBn9/f31/fwBgBH9/fX8Bf2AHf39/fX19fwBgBH9/fX8AAwwL' +
    'AAAAAQIDBAUGBwgFAwEAAQdwCwZtZW1vcnkCAARkb3RzAAAEc3VtcwABCGNvZGVTdW1zAAIFbm9ybXMAAwVzY29yZQAEDHNjb3JlUmVhY2hlZAAFCnNjb3JlRGVu' +
    'c2UABwdhdExlYXN0AAgJZXN0aW1hdGVzAAkIcmVhY2hpbmcACgrBDwusAQQBewF/AXsBfwJAA0AgAkUNAf0MAAAAAAAAAAAAAAAAAAAAACEFQQAhBgNAIAEgBmr9' +
    'AAQAIQcgACAGQQF0aiEIIAUgB/2HASAI/QAEAP26ASAH/YgBIAj9AAQQ/boB/a4B/a4BIQUgBkEQaiEGIAYgA0kNAAsgBCAF/RsAIAX9GwFqIAX9GwIgBf0bA2pq' +
    'NgIAIAEgA2ohASAEQQRqIQQgAkEBayECDAALCwudAwICfwd7AkADQCADRQ0B/QwAAAAAAAAAAAAAAAAAAAAAIQr9DAAAAAAAAAAAAAAAAAAAAAAhC/0MAAAAAAAA' +
    'AAAAAAAAAAAAACEM/QwAAAAAAAAAAAAAAAAAAAAAIQ0gAiEFIAEhBgNAIAD9AAQAIQcgBv0ABAAhCCAIIAf9DA8PDw8PDw8PDw8PDw8PDw/9Tv0OIQkgCiAJ/Y4B' +
    'IQogCyAJQQj9jQH9jgEhCyAIIAdBBP2NAf0MDw8PDw8PDw8PDw8PDw8PD/1O/Q4hCSAMIAn9jgEhDCANIAlBCP2NAf2OASENIABBEGohACAGQRBqIQYgBUEBayEF' +
    'IAUNAAsgCiALQQj9iwH9kQEhCiAMIA1BCP2LAf2RASEMIAQgCiAL/Q0AARARAgMSEwQFFBUGBxYX/QsEACAEIAogC/0NCAkYGQoLGhsMDRwdDg8eH/0LBBAgBCAM' +
    'IA39DQABEBECAxITBAUUFQYHFhf9CwQgIAQgDCAN/Q0ICRgZCgsaGwwNHB0ODx4f/QsEMCAEQcAAaiEEIANBAWshAwwACwsLdQEFfyAEIAFBAnRqIQYCQANAIAQg' +
    'Bk8NAUEAIQkgAyEIIAAgAmohBQNAIAAtAAAhByAJIAggB0EPcWotAAAgCCAHQQR2ai0AEGpqIQkgCEEgaiEIIABBAWohACAAIAVJDQALIAQgCTYCACAEQQRqIQQM' +
    'AAsLC2YCAXsCfyABQQJ0IQgCQANAIAcgCE8NASAC/RMgA/0TIAAgB2r9AAQA/eYB/eQBIQYgBCAHaiAG/QsEACAFIAdqQwAAgD/9E0MAAIA//RMgBv3kAf3nAf0L' +
    'BAAgB0EQaiEHDAALCwuKAgMEfwF9AX8CQANAIAAgAU8NASAALQAAIQcgAEEBaiEAIAdBgAFPBEAgB0H/AHEhB0EHIQgDQCAALQAAIQkgAEEBaiEAIAcgCUH/AHEg' +
    'CHRyIQcgCEEHaiEIIAlBgAFPDQALCyACIAdBAnZqQQFqIQIgAkECdCEMIAdBA3EhCiAKRQRAIAYgDGogBiAMaioCACADIAUgDGoqAgCUkjgCAAUgCkEDRgRAQQAh' +
    'CANAIAAtAAAhCSAAQQFqIQAgCiAJQf8AcSAIdGohCiAIQQdqIQggCUGAAU8NAAsLIApBAWqzIQsgBiAMaiAGIAxqKgIAIAMgCyALIAQgDGoqAgCSlZSSOAIACwwA' +
    'CwsLVgEBf0F/IQgCQANAIANFDQEgAi0AAARAIAAgASgCAGogACABKAIEaiAIIAQgBSAGIAcQBAsgCEHAAGohCCABQQRqIQEgAkEBaiECIANBAWshAwwACwsLygEB' +
    'AnsgAP2JASEEIAT9qQH9+wEhBSADIAP9AAQAIAEgBSAFIAL9AAQA/eQB/ecB/eYB/eQB/QsEACAE/aoB/fsBIQUgAyAD/QAEECABIAUgBSAC/QAEEP3kAf3nAf3m' +
    'Af3kAf0LBBAgAP2KASEEIAT9qQH9+wEhBSADIAP9AAQgIAEgBSAFIAL9AAQg/eQB/ecB/eYB/eQB/QsEICAE/aoB/fsBIQUgAyAD/QAEMCABIAUgBSAC/QAEMP3k' +
    'Af3nAf3mAf3kAf0LBDALwgEBBHv9DA8PDw8PDw8PDw8PDw8PDw8hCCAD/RMhCQJAA0AgAkUNASABLQAABEAgAP0ABAAhBiAA/QAEECEHIAYgCP1OIAkgBCAFEAYg' +
    'ByAI/U4gCSAEQcAAaiAFQcAAahAGIAZBBP2NASAI/U4gCSAEQYABaiAFQYABahAGIAdBBP2NASAI/U4gCSAEQcABaiAFQcABahAGCyAAQSBqIQAgBEGAAmohBCAF' +
    'QYACaiEFIAFBAWohASACQQFrIQIMAAsLC5MBAgN/AXsgAyEFIAL9EyEHAkADQCAEIAFPDQEgAP0ABAAgB/1GIAD9AAQQIAf9Rv2FASAA/QAEICAH/UYgAP0ABDAg' +
    'B/1G/YUB/WX9ZCEGAkADQCAGRQ0BIAMgBCAGaGo2AgAgA0EEaiEDIAYgBkEBa3EhBgwACwsgBEEQaiEEIABBwABqIQAMAAsLIAMgBWtBAnYLlAECAXsBfyAGIAJB' +
    'AnRqIQgCQANAIAYgCE8NASAA/QAEACEHIAYgBf0TIAH9AAQAIAT9EyAD/RMgB/2pAf37Af3mAf3kAf3mAf3kAf0LBAAgBiAF/RMgAf0ABBAgBP0TIAP9EyAH/aoB' +
    '/fsB/eYB/eQB/eYB/eQB/QsEECAAQRBqIQAgAUEgaiEBIAZBIGohBgwACwsLdwIBewF/AkADQCABRQ0B/QwAAAAAAAAAAAAAAAAAAAAAIQQgAEGAAmohBQNAIAQg' +
    'AP0ABAAgAv0T/UYgAP0ABBAgAv0T/Ub9UP1QIQQgAEEgaiEAIAAgBUkNAAsgAyAE/VM6AAAgA0EBaiEDIAFBAWshAQwACwsL',
  'base64',
)
const MODULE = new WebAssembly.Module(KERNELS)

/** Components in one step of `dots`. Vectors are padded with zeros to a multiple of it. */
const STEP = 16
const PAGE_BYTES = 65_536
const MAX_INT16 = 32_767
const MAX_INT8 = 127
const MAX_INT32 = 2 ** 31 - 1

/** The functions over one memory, whose first bytes each caller lays out anew for its call. */
export class Kernels {
  readonly functions = new WebAssembly.Instance(MODULE).exports

  /** The memory, at least this long. Views of it from before are no longer valid. */
  reserve(bytes: number): ArrayBuffer {
    const { memory } = this.functions
    const missing = bytes - memory.buffer.byteLength
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES))
    return memory.buffer
  }
}

/** Rounds up to a multiple of 16, where vectors of SIMD begin. */
export function aligned(count: number): number {
  return Math.ceil(count / STEP) * STEP
}

/**
 * The dot product of `query` with each of `count` int8 vectors of `aligned(query.length)` components, which lie one
 * after another in `vectors`.
 */
export function dotsWith(kernels: Kernels, query: Float32Array, vectors: Uint8Array, count: number): Float64Array {
  const length = aligned(query.length)
  const queryAt = aligned(count * 4)
  const vectorsAt = queryAt + length * 2
  const buffer = kernels.reserve(vectorsAt + count * length)
  // The query keeps 16 bits, or as many as keep every possible sum inside 32 bits. So only the stored vectors are
  // rounded.
  const largest = query.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
  const total = query.reduce((sum, x) => sum + Math.abs(x), 0)
  const scale = largest === 0 ? 1 : Math.min(MAX_INT16 / largest, (MAX_INT32 / MAX_INT8 - query.length) / total)
  const rounded = new Int16Array(buffer, queryAt, length).fill(0)
  rounded.set(query.map((x) => Math.round(x * scale)))
  new Uint8Array(buffer).set(vectors.subarray(0, count * length), vectorsAt)
  kernels.functions.dots(queryAt, vectorsAt, count, length, 0)
  return Float64Array.from(new Int32Array(buffer, 0, count), (dot) => dot / scale)
}
