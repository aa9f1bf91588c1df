/** Reads the tokens that clients of the chat protocol make of texts, which are those of OpenAI's embedding models. */
export interface TokenDecoder {
  /** Gives the text, or the position of the first number that is no token. Bytes that are no UTF-8 become U+FFFD. */
  decode(tokens: readonly number[]): Promise<{ readonly text: string } | { readonly unknownAt: number }>
}
