/** The part of the standard `WebAssembly` object used here. Its types come only with the DOM library. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: Functions }
}

/** What each does is in `kernels.wat`. Every argument but a weight, a slope and a bound is a place or a number of items. */
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
  readonly reaching: (scores: number, ranges: number, least: number, out: number) => void
}

/**
 * The loops of a search in WebAssembly, whose 128-bit SIMD is the only vector arithmetic in Node. The source of these
 * bytes is `kernels.wat`.
 */
export const KERNELS = Buffer.from(
  'AGFzbQEAAAABLgVgBX9/f39/AGAGf399fX9/AGAHf39/fX9/fwBgCH9/f399f39/AGAEf399fwADBwYAAAECAwQFAwEAAQdCBwZtZW1vcnkCAARkb3RzAAAE' +
    'c3VtcwABBW5vcm1zAAIFc2NvcmUAAwxzY29yZVJlYWNoZWQABAhyZWFjaGluZwAFCpAJBqwBBAF7AX8BewF/AkADQCACRQ0B/QwAAAAAAAAAAAAAAAAAAAAA' +
    'IQVBACEGA0AgASAGav0ABAAhByAAIAZBAXRqIQggBSAH/YcBIAj9AAQA/boBIAf9iAEgCP0ABBD9ugH9rgH9rgEhBSAGQRBqIQYgBiADSQ0ACyAEIAX9GwAg' +
    'Bf0bAWogBf0bAiAF/RsDamo2AgAgASADaiEBIARBBGohBCACQQFrIQIMAAsLC50DAgJ/B3sCQANAIANFDQH9DAAAAAAAAAAAAAAAAAAAAAAhCv0MAAAAAAAA' +
    'AAAAAAAAAAAAACEL/QwAAAAAAAAAAAAAAAAAAAAAIQz9DAAAAAAAAAAAAAAAAAAAAAAhDSACIQUgASEGA0AgAP0ABAAhByAG/QAEACEIIAggB/0MDw8PDw8P' +
    'Dw8PDw8PDw8PD/1O/Q4hCSAKIAn9jgEhCiALIAlBCP2NAf2OASELIAggB0EE/Y0B/QwPDw8PDw8PDw8PDw8PDw8P/U79DiEJIAwgCf2OASEMIA0gCUEI/Y0B' +
    '/Y4BIQ0gAEEQaiEAIAZBEGohBiAFQQFrIQUgBQ0ACyAKIAtBCP2LAf2RASEKIAwgDUEI/YsB/ZEBIQwgBCAKIAv9DQABEBECAxITBAUUFQYHFhf9CwQAIAQg' +
    'CiAL/Q0ICRgZCgsaGwwNHB0ODx4f/QsEECAEIAwgDf0NAAEQEQIDEhMEBRQVBgcWF/0LBCAgBCAMIA39DQgJGBkKCxobDA0cHQ4PHh/9CwQwIARBwABqIQQg' +
    'A0EBayEDDAALCwtmAgF7An8gAUECdCEIAkADQCAHIAhPDQEgAv0TIAP9EyAAIAdq/QAEAP3mAf3kASEGIAQgB2ogBv0LBAAgBSAHakMAAIA//RNDAACAP/0T' +
    'IAb95AH95wH9CwQAIAdBEGohBwwACwsLigIDBH8BfQF/AkADQCAAIAFPDQEgAC0AACEHIABBAWohACAHQYABTwRAIAdB/wBxIQdBByEIA0AgAC0AACEJIABB' +
    'AWohACAHIAlB/wBxIAh0ciEHIAhBB2ohCCAJQYABTw0ACwsgAiAHQQJ2akEBaiECIAJBAnQhDCAHQQNxIQogCkUEQCAGIAxqIAYgDGoqAgAgAyAFIAxqKgIA' +
    'lJI4AgAFIApBA0YEQEEAIQgDQCAALQAAIQkgAEEBaiEAIAogCUH/AHEgCHRqIQogCEEHaiEIIAlBgAFPDQALCyAKQQFqsyELIAYgDGogBiAMaioCACADIAsg' +
    'CyAEIAxqKgIAkpWUkjgCAAsMAAsLC1YBAX9BfyEIAkADQCADRQ0BIAItAAAEQCAAIAEoAgBqIAAgASgCBGogCCAEIAUgBiAHEAMLIAhBwABqIQggAUEEaiEB' +
    'IAJBAWohAiADQQFrIQMMAAsLC3cCAXsBfwJAA0AgAUUNAf0MAAAAAAAAAAAAAAAAAAAAACEEIABBgAJqIQUDQCAEIAD9AAQAIAL9E/1GIAD9AAQQIAL9E/1G' +
    '/VD9UCEEIABBIGohACAAIAVJDQALIAMgBP1TOgAAIANBAWohAyABQQFrIQEMAAsLCw==',
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
