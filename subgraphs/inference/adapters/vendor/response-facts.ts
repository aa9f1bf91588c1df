import { LRUCache } from 'lru-cache'
import { MIN_SECRET_LENGTH, redactorOf } from '../../domain/redact-secrets.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Fields with what a model says, or with a vendor's signature of it. */
const TEXTS: ReadonlySet<string> = new Set([
  ...['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments', 'input', 'text', 'delta', 'word', 'transcript'],
  ...['data', 'signature', 'thought_signature', 'encrypted_content'],
])
/** Longer texts, such as images in `data:` URIs and documents, are searched for a key as it is written, and no more. */
const MAX_LENGTH = 8_192
/** Facts that are remembered as harmless, because all chunks of an answer repeat them, and how long they are. */
const MAX_KNOWN = 1_000
const MAX_KNOWN_LENGTH = 256
/** Facts of one answer or chunk that are new. A search takes some microseconds. */
const MAX_SEARCHES = 20_000

/**
 * Returns a function that removes the operator's keys from the facts of a vendor's answer or chunk: from all its short
 * texts but those of the model, and fields whose names have one. It changes what it is given.
 */
export function factsRedactor(keys: readonly string[]): <Value extends ProtocolObject>(response: Value) => Value {
  const redact = redactorOf(keys)
  const known = new LRUCache<string, true>({ max: MAX_KNOWN })
  const whole = keys.filter(({ length }) => length >= MIN_SECRET_LENGTH)

  function redactFact(fact: string): string {
    const redacted = redact(fact) ?? '…'
    if (redacted === fact && fact.length <= MAX_KNOWN_LENGTH) known.set(fact, true)
    return redacted
  }

  return (response) => {
    let left = MAX_SEARCHES
    const withoutKeys = (text: string): string => {
      if (text.length > MAX_LENGTH) return whole.some((key) => text.includes(key)) ? '…' : text
      if (known.get(text)) return text
      return left-- > 0 ? redactFact(text) : '…'
    }
    const visit = (node: Record<string, unknown> | unknown[], isText: boolean): void => {
      for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
        if (typeof key === 'string' && withoutKeys(key) !== key) {
          delete (node as Record<string, unknown>)[key]
          continue
        }
        const value = (node as Record<PropertyKey, unknown>)[key]
        const isModels = typeof key === 'string' ? TEXTS.has(key) : isText
        if (typeof value === 'string') {
          if (isModels) continue
          const fact = withoutKeys(value)
          if (fact !== value) (node as Record<PropertyKey, unknown>)[key] = fact
        } else if (typeof value === 'object' && value !== null && key !== 'logprobs') visit(value as Record<string, unknown>, isModels)
      }
    }
    visit(response as Record<string, unknown>, false)
    return response
  }
}
