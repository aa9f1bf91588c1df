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
  'AGFzbQEAAAABUAlgBX9/f39/AGAGf399fX9/AGAHf39/fX9/fwBgCH9/f399f39/AGAEe3t/fwBgBn9/f31/fwBgBH9/fX8Bf2AHf39/fX19fwBgBH9/fX8AAwsK' +
  'AAABAgMEBQYHCAUDAQABB2UKBm1lbW9yeQIABGRvdHMAAARzdW1zAAEFbm9ybXMAAgVzY29yZQADDHNjb3JlUmVhY2hlZAAECnNjb3JlRGVuc2UABgdhdExlYXN0' +
  'AAcJZXN0aW1hdGVzAAgIcmVhY2hpbmcACQrLDgqsAQQBewF/AXsBfwJAA0AgAkUNAf0MAAAAAAAAAAAAAAAAAAAAACEFQQAhBgNAIAEgBmr9AAQAIQcgACAGQQF0' +
  'aiEIIAUgB/2HASAI/QAEAP26ASAH/YgBIAj9AAQQ/boB/a4B/a4BIQUgBkEQaiEGIAYgA0kNAAsgBCAF/RsAIAX9GwFqIAX9GwIgBf0bA2pqNgIAIAEgA2ohASAE' +
  'QQRqIQQgAkEBayECDAALCwudAwICfwd7AkADQCADRQ0B/QwAAAAAAAAAAAAAAAAAAAAAIQr9DAAAAAAAAAAAAAAAAAAAAAAhC/0MAAAAAAAAAAAAAAAAAAAAACEM' +
  '/QwAAAAAAAAAAAAAAAAAAAAAIQ0gAiEFIAEhBgNAIAD9AAQAIQcgBv0ABAAhCCAIIAf9DA8PDw8PDw8PDw8PDw8PDw/9Tv0OIQkgCiAJ/Y4BIQogCyAJQQj9jQH9' +
  'jgEhCyAIIAdBBP2NAf0MDw8PDw8PDw8PDw8PDw8PD/1O/Q4hCSAMIAn9jgEhDCANIAlBCP2NAf2OASENIABBEGohACAGQRBqIQYgBUEBayEFIAUNAAsgCiALQQj9' +
  'iwH9kQEhCiAMIA1BCP2LAf2RASEMIAQgCiAL/Q0AARARAgMSEwQFFBUGBxYX/QsEACAEIAogC/0NCAkYGQoLGhsMDRwdDg8eH/0LBBAgBCAMIA39DQABEBECAxIT' +
  'BAUUFQYHFhf9CwQgIAQgDCAN/Q0ICRgZCgsaGwwNHB0ODx4f/QsEMCAEQcAAaiEEIANBAWshAwwACwsLZgIBewJ/IAFBAnQhCAJAA0AgByAITw0BIAL9EyAD/RMg' +
  'ACAHav0ABAD95gH95AEhBiAEIAdqIAb9CwQAIAUgB2pDAACAP/0TQwAAgD/9EyAG/eQB/ecB/QsEACAHQRBqIQcMAAsLC4oCAwR/AX0BfwJAA0AgACABTw0BIAAt' +
  'AAAhByAAQQFqIQAgB0GAAU8EQCAHQf8AcSEHQQchCANAIAAtAAAhCSAAQQFqIQAgByAJQf8AcSAIdHIhByAIQQdqIQggCUGAAU8NAAsLIAIgB0ECdmpBAWohAiAC' +
  'QQJ0IQwgB0EDcSEKIApFBEAgBiAMaiAGIAxqKgIAIAMgBSAMaioCAJSSOAIABSAKQQNGBEBBACEIA0AgAC0AACEJIABBAWohACAKIAlB/wBxIAh0aiEKIAhBB2oh' +
  'CCAJQYABTw0ACwsgCkEBarMhCyAGIAxqIAYgDGoqAgAgAyALIAsgBCAMaioCAJKVlJI4AgALDAALCwtWAQF/QX8hCAJAA0AgA0UNASACLQAABEAgACABKAIAaiAA' +
  'IAEoAgRqIAggBCAFIAYgBxADCyAIQcAAaiEIIAFBBGohASACQQFqIQIgA0EBayEDDAALCwvKAQECeyAA/YkBIQQgBP2pAf37ASEFIAMgA/0ABAAgASAFIAUgAv0A' +
  'BAD95AH95wH95gH95AH9CwQAIAT9qgH9+wEhBSADIAP9AAQQIAEgBSAFIAL9AAQQ/eQB/ecB/eYB/eQB/QsEECAA/YoBIQQgBP2pAf37ASEFIAMgA/0ABCAgASAF' +
  'IAUgAv0ABCD95AH95wH95gH95AH9CwQgIAT9qgH9+wEhBSADIAP9AAQwIAEgBSAFIAL9AAQw/eQB/ecB/eYB/eQB/QsEMAvCAQEEe/0MDw8PDw8PDw8PDw8PDw8P' +
  'DyEIIAP9EyEJAkADQCACRQ0BIAEtAAAEQCAA/QAEACEGIAD9AAQQIQcgBiAI/U4gCSAEIAUQBSAHIAj9TiAJIARBwABqIAVBwABqEAUgBkEE/Y0BIAj9TiAJIARB' +
  'gAFqIAVBgAFqEAUgB0EE/Y0BIAj9TiAJIARBwAFqIAVBwAFqEAULIABBIGohACAEQYACaiEEIAVBgAJqIQUgAUEBaiEBIAJBAWshAgwACwsLkwECA38BeyADIQUg' +
  'Av0TIQcCQANAIAQgAU8NASAA/QAEACAH/UYgAP0ABBAgB/1G/YUBIAD9AAQgIAf9RiAA/QAEMCAH/Ub9hQH9Zf1kIQYCQANAIAZFDQEgAyAEIAZoajYCACADQQRq' +
  'IQMgBiAGQQFrcSEGDAALCyAEQRBqIQQgAEHAAGohAAwACwsgAyAFa0ECdguUAQIBewF/IAYgAkECdGohCAJAA0AgBiAITw0BIAD9AAQAIQcgBiAF/RMgAf0ABAAg' +
  'BP0TIAP9EyAH/akB/fsB/eYB/eQB/eYB/eQB/QsEACAGIAX9EyAB/QAEECAE/RMgA/0TIAf9qgH9+wH95gH95AH95gH95AH9CwQQIABBEGohACABQSBqIQEgBkEg' +
  'aiEGDAALCwt3AgF7AX8CQANAIAFFDQH9DAAAAAAAAAAAAAAAAAAAAAAhBCAAQYACaiEFA0AgBCAA/QAEACAC/RP9RiAA/QAEECAC/RP9Rv1Q/VAhBCAAQSBqIQAg' +
  'ACAFSQ0ACyADIAT9UzoAACADQQFqIQMgAUEBayEBDAALCws=',
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
