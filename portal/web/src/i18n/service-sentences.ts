/** A sentence of the service with names for what varies in it, and what it is in another language. */
export interface Sentence {
  readonly pattern: RegExp
  readonly names: readonly string[]
  readonly text: string
}

const NAME = /\{(\w+)\}/g
/** Their values are sentences themselves, or parts of one. */
const SAID = new Set(['instead', 'limit', 'message', 'which', 'why'])

/** Those that say most by themselves come first: others could take them for a value. */
export function readSentences(sentences: Readonly<Record<string, string>>): readonly Sentence[] {
  const lengthOf = (sentence: string) => sentence.replace(NAME, '').length
  return Object.entries(sentences)
    .sort(([one], [other]) => lengthOf(other) - lengthOf(one))
    .map(([sentence, text]) => ({
      pattern: new RegExp(`^${sentence.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(NAME, '(.+?)')}$`, 's'),
      names: [...sentence.matchAll(NAME)].map(([, name]) => name!),
      text,
    }))
}

/** What the service says, in the language of the sentences. Null: none of them says it. `write`: writes a value. */
export function translate(sentences: readonly Sentence[], said: string, write: (value: string) => string): string | null {
  for (const { pattern, names, text } of sentences) {
    const match = pattern.exec(said)
    if (!match) continue
    const values = names.map((name, index) => {
      const value = match[index + 1]!
      return [name, translate(sentences, value, write) ?? (SAID.has(name) ? null : write(value))] as const
    })
    if (values.some(([, value]) => value === null)) continue
    const written = new Map(values)
    return text.replace(NAME, (placeholder, name: string) => written.get(name) ?? placeholder)
  }
  return null
}
