/**
 * Decodes token ids that clients of the embeddings protocol send in place of texts: ids of the vocabulary of OpenAI's
 * embedding models.
 */
export interface TokenDecoder {
  /**
   * Returns the text, or the position of the first number that is not a token. Bytes that are not UTF-8 become U+FFFD.
   */
  decode(tokens: readonly number[]): Promise<{ readonly text: string } | { readonly unknownAt: number }>
}
