const VOCABULARY = 30_000
const SYLLABLES = {
  en: 'ba ren tion ing ta lo mi ser con ver'.split(' '),
  ar: 'من مد كت ست رس ال ون ات قر فل'.split(' '),
}

export type Script = keyof typeof SYLLABLES

/** Returns a generator of words of two to four syllables. By Zipf's law, the word of rank r has a weight of 1 / r. */
export function wordSource(random: () => number, scripts: readonly Script[] = ['en', 'ar']): () => string {
  const vocabulary = Array.from({ length: VOCABULARY }, () => {
    const syllables = SYLLABLES[scripts[Math.floor(random() * scripts.length)]!]
    return Array.from({ length: 2 + Math.floor(random() * 3) }, () => syllables[Math.floor(random() * syllables.length)]).join('')
  })
  let total = 0
  const upTo = Float64Array.from({ length: VOCABULARY }, (_, rank) => (total += 1 / (rank + 1)))
  return () => vocabulary[firstAbove(upTo, random() * total)]!
}

function firstAbove(ascending: Float64Array, value: number): number {
  let low = 0
  let high = ascending.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (ascending[middle]! > value) high = middle
    else low = middle + 1
  }
  return low
}

/** Returns a generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
