/** The words of a text, without marks and tatweel, in order. */
export function wordsIn(text: string): readonly string[] {
  const plain = text.normalize('NFKC').replace(/[\p{M}\u0640\u00ad\u200b-\u200f]/gu, '')
  return [...plain.matchAll(/[\p{L}\p{N}]+/gu)].map(([word]) => word)
}

/** Each two words that follow each other. */
export function pairsIn(words: readonly string[]): readonly string[] {
  return words.slice(1).map((word, index) => `${words[index]} ${word}`)
}

/** The share of the reference's items that are found, each as often. */
export function recallOf(reference: readonly string[], found: readonly string[]): number {
  const left = new Map<string, number>()
  for (const item of found) left.set(item, (left.get(item) ?? 0) + 1)
  let recalled = 0
  for (const item of reference) {
    const count = left.get(item) ?? 0
    if (count === 0) continue
    recalled += 1
    left.set(item, count - 1)
  }
  return recalled / reference.length
}
