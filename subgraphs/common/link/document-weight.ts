import type { DocumentNode } from 'graphql'

/** Heap bytes of one lexical token parsed without locations: its node, names and arrays (measured: 150 to 250). */
const TOKEN_BYTES = 256
/** What a token adds if its operation is compiled (measured: 130 to 240). */
const COMPILED_TOKEN_BYTES = 256

/** Heap bytes of a parsed document and its text, which includes long literals. */
export function documentWeight(document: DocumentNode, text: string): number {
  return (document.tokenCount ?? 0) * TOKEN_BYTES + text.length * 2
}

/** Heap bytes of the functions that `compileOperation` makes of a document. */
export function compiledWeight({ tokenCount = 0 }: DocumentNode): number {
  return tokenCount * COMPILED_TOKEN_BYTES
}
