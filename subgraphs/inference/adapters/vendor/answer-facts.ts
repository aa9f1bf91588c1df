import { LRUCache } from 'lru-cache'
import { redactorOf } from '../../../common/redact-secrets.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Fields with what a model says, or with a vendor's signature of it. */
const TEXTS: ReadonlySet<string> = new Set([
  ...['content', 'reasoning_content', 'reasoning', 'refusal', 'arguments', 'input', 'text', 'delta', 'word', 'transcript'],
  ...['data', 'signature', 'thought_signature', 'encrypted_content'],
])
/** Longer texts are no facts: images in `data:` URIs, documents. */
const MAX_LENGTH = 8_192
/** Facts that are remembered as harmless, because all chunks of an answer repeat them, and how long they are. */
const MAX_KNOWN = 1_000
const MAX_KNOWN_LENGTH = 256
/** Facts of one answer or chunk that are new. A search takes some microseconds. */
const MAX_SEARCHES = 20_000

/**
 * Returns a function that removes the operator's keys from the facts of a vendor's answer or chunk: from all its short
 * texts but those of the model. It changes what it is given.
 */
export function factsRedactor(keys: readonly string[]): <Answer extends ProtocolObject>(answer: Answer) => Answer {
  const redact = redactorOf(keys)
  const known = new LRUCache<string, true>({ max: MAX_KNOWN })

  function redactFact(fact: string): string {
    const redacted = redact(fact) ?? '…'
    if (redacted === fact && fact.length <= MAX_KNOWN_LENGTH) known.set(fact, true)
    return redacted
  }

  return (answer) => {
    let left = MAX_SEARCHES
    const visit = (node: Record<string, unknown> | unknown[], isText: boolean): void => {
      for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
        const value = (node as Record<PropertyKey, unknown>)[key]
        const isModels = typeof key === 'string' ? TEXTS.has(key) : isText
        if (typeof value === 'string') {
          if (isModels || value.length > MAX_LENGTH) continue
          const fact = known.get(value) ? value : left-- > 0 ? redactFact(value) : '…'
          if (fact !== value) (node as Record<PropertyKey, unknown>)[key] = fact
        } else if (typeof value === 'object' && value !== null && key !== 'logprobs') visit(value as Record<string, unknown>, isModels)
      }
    }
    visit(answer as Record<string, unknown>, false)
    return answer
  }
}
