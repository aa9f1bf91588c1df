import type { IndexedChunk } from '../../ports/chunk-index.ts'

/** A chunk as it crosses to the writer's thread: copying thousands of short strings would hold up the event loop, two long ones do not. */
export interface PackedChunk extends Omit<IndexedChunk, 'words' | 'grams' | 'context'> {
  /** Null: written before it was kept. */
  readonly context: string | null
  readonly words: string
  readonly grams: string
}

/** Terms are letters, digits and edge marks, so none has it. */
const SEPARATOR = '\u0000'

export function packed(chunk: IndexedChunk): PackedChunk {
  return { ...chunk, words: joinedTerms(chunk.words), grams: joinedTerms(chunk.grams) }
}

export function joinedTerms(terms: readonly string[]): string {
  return terms.join(SEPARATOR)
}

export function unpackTerms(terms: string): readonly string[] {
  return terms === '' ? [] : terms.split(SEPARATOR)
}
