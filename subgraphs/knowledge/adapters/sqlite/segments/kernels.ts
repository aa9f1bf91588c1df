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
  readonly dots: (query: number, vectors: number, count: number, length: number, stride: number, out: number) => void
  readonly counts: (list: number, end: number, terms: number, termsEnd: number, out: number) => void
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
  'AGFzbQEAAAABWQpgBn9/f39/fwBgBX9/f39/AGAGf399fX9/AGAHf39/fX9/fwBgCH9/f399f39/AGAEe3t/fwBgBn9/f31/fwBgBH9/fX8Bf2AHf39/fX19fwBgBH9/' +
    'fX8AAw0MAAEBAgMEBQYHCAkBBQMBAAEHeQwGbWVtb3J5AgAEZG90cwAABHN1bXMAAQhjb2RlU3VtcwACBW5vcm1zAAMFc2NvcmUABAxzY29yZVJlYWNoZWQABQpzY29y' +
    'ZURlbnNlAAcHYXRMZWFzdAAICWVzdGltYXRlcwAJCHJlYWNoaW5nAAoGY291bnRzAAsKyxEMrAEEAXsBfwF7AX8CQANAIAJFDQH9DAAAAAAAAAAAAAAAAAAAAAAhBkEA' +
    'IQcDQCABIAdq/QAEACEIIAAgB0EBdGohCSAGIAj9hwEgCf0ABAD9ugEgCP2IASAJ/QAEEP26Af2uAf2uASEGIAdBEGohByAHIANJDQALIAUgBv0bACAG/RsBaiAG/RsC' +
    'IAb9GwNqajYCACABIARqIQEgBUEEaiEFIAJBAWshAgwACwsLnQMCAn8HewJAA0AgA0UNAf0MAAAAAAAAAAAAAAAAAAAAACEK/QwAAAAAAAAAAAAAAAAAAAAAIQv9DAAA' +
    'AAAAAAAAAAAAAAAAAAAhDP0MAAAAAAAAAAAAAAAAAAAAACENIAIhBSABIQYDQCAA/QAEACEHIAb9AAQAIQggCCAH/QwPDw8PDw8PDw8PDw8PDw8P/U79DiEJIAogCf2O' +
    'ASEKIAsgCUEI/Y0B/Y4BIQsgCCAHQQT9jQH9DA8PDw8PDw8PDw8PDw8PDw/9Tv0OIQkgDCAJ/Y4BIQwgDSAJQQj9jQH9jgEhDSAAQRBqIQAgBkEQaiEGIAVBAWshBSAF' +
    'DQALIAogC0EI/YsB/ZEBIQogDCANQQj9iwH9kQEhDCAEIAogC/0NAAEQEQIDEhMEBRQVBgcWF/0LBAAgBCAKIAv9DQgJGBkKCxobDA0cHQ4PHh/9CwQQIAQgDCAN/Q0A' +
    'ARARAgMSEwQFFBUGBxYX/QsEICAEIAwgDf0NCAkYGQoLGhsMDRwdDg8eH/0LBDAgBEHAAGohBCADQQFrIQMMAAsLC3UBBX8gBCABQQJ0aiEGAkADQCAEIAZPDQFBACEJ' +
    'IAMhCCAAIAJqIQUDQCAALQAAIQcgCSAIIAdBD3FqLQAAIAggB0EEdmotABBqaiEJIAhBIGohCCAAQQFqIQAgACAFSQ0ACyAEIAk2AgAgBEEEaiEEDAALCwtmAgF7An8g' +
    'AUECdCEIAkADQCAHIAhPDQEgAv0TIAP9EyAAIAdq/QAEAP3mAf3kASEGIAQgB2ogBv0LBAAgBSAHakMAAIA//RNDAACAP/0TIAb95AH95wH9CwQAIAdBEGohBwwACwsL' +
    'igIDBH8BfQF/AkADQCAAIAFPDQEgAC0AACEHIABBAWohACAHQYABTwRAIAdB/wBxIQdBByEIA0AgAC0AACEJIABBAWohACAHIAlB/wBxIAh0ciEHIAhBB2ohCCAJQYAB' +
    'Tw0ACwsgAiAHQQJ2akEBaiECIAJBAnQhDCAHQQNxIQogCkUEQCAGIAxqIAYgDGoqAgAgAyAFIAxqKgIAlJI4AgAFIApBA0YEQEEAIQgDQCAALQAAIQkgAEEBaiEAIAog' +
    'CUH/AHEgCHRqIQogCEEHaiEIIAlBgAFPDQALCyAKQQFqsyELIAYgDGogBiAMaioCACADIAsgCyAEIAxqKgIAkpWUkjgCAAsMAAsLC1YBAX9BfyEIAkADQCADRQ0BIAIt' +
    'AAAEQCAAIAEoAgBqIAAgASgCBGogCCAEIAUgBiAHEAQLIAhBwABqIQggAUEEaiEBIAJBAWohAiADQQFrIQMMAAsLC8oBAQJ7IAD9iQEhBCAE/akB/fsBIQUgAyAD/QAE' +
    'ACABIAUgBSAC/QAEAP3kAf3nAf3mAf3kAf0LBAAgBP2qAf37ASEFIAMgA/0ABBAgASAFIAUgAv0ABBD95AH95wH95gH95AH9CwQQIAD9igEhBCAE/akB/fsBIQUgAyAD' +
    '/QAEICABIAUgBSAC/QAEIP3kAf3nAf3mAf3kAf0LBCAgBP2qAf37ASEFIAMgA/0ABDAgASAFIAUgAv0ABDD95AH95wH95gH95AH9CwQwC8IBAQR7/QwPDw8PDw8PDw8P' +
    'Dw8PDw8PIQggA/0TIQkCQANAIAJFDQEgAS0AAARAIAD9AAQAIQYgAP0ABBAhByAGIAj9TiAJIAQgBRAGIAcgCP1OIAkgBEHAAGogBUHAAGoQBiAGQQT9jQEgCP1OIAkg' +
    'BEGAAWogBUGAAWoQBiAHQQT9jQEgCP1OIAkgBEHAAWogBUHAAWoQBgsgAEEgaiEAIARBgAJqIQQgBUGAAmohBSABQQFqIQEgAkEBayECDAALCwuTAQIDfwF7IAMhBSAC' +
    '/RMhBwJAA0AgBCABTw0BIAD9AAQAIAf9RiAA/QAEECAH/Ub9hQEgAP0ABCAgB/1GIAD9AAQwIAf9Rv2FAf1l/WQhBgJAA0AgBkUNASADIAQgBmhqNgIAIANBBGohAyAG' +
    'IAZBAWtxIQYMAAsLIARBEGohBCAAQcAAaiEADAALCyADIAVrQQJ2C5QBAgF7AX8gBiACQQJ0aiEIAkADQCAGIAhPDQEgAP0ABAAhByAGIAX9EyAB/QAEACAE/RMgA/0T' +
    'IAf9qQH9+wH95gH95AH95gH95AH9CwQAIAYgBf0TIAH9AAQQIAT9EyAD/RMgB/2qAf37Af3mAf3kAf3mAf3kAf0LBBAgAEEQaiEAIAFBIGohASAGQSBqIQYMAAsLC3cC' +
    'AXsBfwJAA0AgAUUNAf0MAAAAAAAAAAAAAAAAAAAAACEEIABBgAJqIQUDQCAEIAD9AAQAIAL9E/1GIAD9AAQQIAL9E/1G/VD9UCEEIABBIGohACAAIAVJDQALIAMgBP1T' +
    'OgAAIANBAWohAyABQQFrIQEMAAsLC4gCAQR/IARBACADIAJr/AsAAkAgAiADTw0AA0AgACABTw0BIAAtAAAhBiAAQQFqIQAgBkGAAU8EQCAGQf8AcSEGQQchCANAIAAt' +
    'AAAhByAAQQFqIQAgBiAHQf8AcSAIdHIhBiAIQQdqIQggB0GAAU8NAAsLIAUgBmohBSAALQAAIQYgAEEBaiEAIAZBgAFPBEAgBkH/AHEhBkEHIQgDQCAALQAAIQcgAEEB' +
    'aiEAIAYgB0H/AHEgCHRyIQYgCEEHaiEIIAdBgAFPDQALCwJAA0AgAigCACAFTw0BIAJBBGohAiAEQQRqIQQgAiADTw0DDAALCyACKAIAIAVGBEAgBCAGNgIACwwACwsL',
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
 * The dot product of `query` with each of the int8 vectors in `rows`: each has `before` bytes of something else, and
 * then `aligned(query.length)` components.
 */
export function dotsWith(kernels: Kernels, query: Float32Array, rows: Uint8Array, before: number): Float64Array {
  const length = aligned(query.length)
  const stride = before + length
  const count = rows.length / stride
  const queryAt = aligned(count * 4)
  const vectorsAt = queryAt + length * 2
  const buffer = kernels.reserve(vectorsAt + rows.length)
  // The query keeps 16 bits, or as many as keep every possible sum inside 32 bits. So only the stored vectors are
  // rounded.
  const largest = query.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
  const total = query.reduce((sum, x) => sum + Math.abs(x), 0)
  const scale = largest === 0 ? 1 : Math.min(MAX_INT16 / largest, (MAX_INT32 / MAX_INT8 - query.length) / total)
  const rounded = new Int16Array(buffer, queryAt, length).fill(0)
  rounded.set(query.map((x) => Math.round(x * scale)))
  new Uint8Array(buffer).set(rows, vectorsAt)
  kernels.functions.dots(queryAt, vectorsAt + before, count, length, stride, 0)
  return Float64Array.from(new Int32Array(buffer, 0, count), (dot) => dot / scale)
}
