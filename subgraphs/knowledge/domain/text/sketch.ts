import { setImmediate } from 'node:timers/promises'
import { words } from './text-analysis.ts'

/**
 * A sketch of a text, by which near-duplicates are found: one-permutation MinHash over runs of four words (Li, Owen and
 * Zhang, 2012), with empty bins filled from the next (Shrivastava and Li, 2014). The share of equal values estimates the
 * share of runs that two texts have in common (Jaccard), with a standard error of at most .06.
 */

/** Values of a sketch. Each takes 4 bytes. */
const BINS = 64
/** Values of one band: texts that have a whole band in common are compared. */
const BAND = 4
const RUN_WORDS = 4
/** Characters that are analysed before other work gets its turn. It takes some milliseconds. */
const CHARS_PER_TICK = 16_384
/** Above every value of a bin, which has 26 bits. */
const EMPTY = 0xffff_ffff
/** Added to a value that fills an empty bin, for each bin between them. */
const FILLED = 0x0400_0001

/** Gives the sketch in base64. Texts that differ only in what search folds have the same. */
export async function buildSketch(text: string): Promise<string> {
  const bins = new Uint32Array(BINS).fill(EMPTY)
  const run: string[] = []
  const add = () => {
    const hash = hashOf(run.join(' '))
    const bin = hash % BINS
    bins[bin] = Math.min(bins[bin]!, Math.floor(hash / BINS))
  }
  for (let from = 0; from < text.length; ) {
    // A word is cut only where no space follows.
    const space = text.slice(from + CHARS_PER_TICK, from + 2 * CHARS_PER_TICK).search(/\s/)
    const to = from + CHARS_PER_TICK + Math.max(0, space)
    for (const word of words(text.slice(from, to))) {
      run.push(word)
      if (run.length > RUN_WORDS) run.shift()
      if (run.length === RUN_WORDS) add()
    }
    from = to
    await setImmediate()
  }
  // A text of fewer words is one run.
  if (run.length > 0 && run.length < RUN_WORDS) add()
  return Buffer.from(fill(bins).buffer).toString('base64')
}

/** Gives 0 to 1. */
export function compareSketches(one: string, other: string): number {
  const [a, b] = [decode(one), decode(other)]
  return a.reduce((equal, value, i) => equal + (value === b[i] ? 1 : 0), 0) / BINS
}

/** Gives each band with its place. Two texts of similarity .8 share one with a probability of .9997. */
export function listBands(sketch: string): readonly string[] {
  const bytes = Buffer.from(sketch, 'base64')
  return Array.from({ length: BINS / BAND }, (_, i) => `${i}_${bytes.toString('hex', i * BAND * 4, (i + 1) * BAND * 4)}`)
}

function fill(bins: Uint32Array): Uint32Array {
  return bins.map((value, i) => {
    if (value !== EMPTY) return value
    for (let distance = 1; distance < BINS; distance++) {
      const other = bins[(i + distance) % BINS]!
      if (other !== EMPTY) return (other + distance * FILLED) >>> 0
    }
    return EMPTY
  })
}

function decode(sketch: string): Uint32Array {
  return new Uint32Array(Uint8Array.from(Buffer.from(sketch, 'base64')).buffer)
}

/** FNV-1a with the last step of MurmurHash3, which spreads the bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
