/** One turn of a chat. `image` is a data URL. */
export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly text: string
  readonly image?: string
}

/** The known part of a reply: it grows with each event. */
export interface Reply {
  readonly text: string
  readonly finishReason: string | null
  readonly warnings: readonly string[]
  readonly usage: { readonly promptTokens: number; readonly completionTokens: number } | null
  readonly cost: string | null
}

export const NO_REPLY: Reply = { text: '', finishReason: null, warnings: [], usage: null, cost: null }

interface Event {
  readonly textDelta: string
  readonly finishReason: string | null
  readonly warnings: readonly string[] | null
  readonly usage: Reply['usage'] | undefined
  readonly cost: string | null
}

export function withEvent(reply: Reply, { textDelta, finishReason, warnings, usage, cost }: Event): Reply {
  return {
    text: reply.text + textDelta,
    finishReason: finishReason ?? reply.finishReason,
    warnings: warnings ? [...reply.warnings, ...warnings] : reply.warnings,
    usage: usage ?? reply.usage,
    cost: cost ?? reply.cost,
  }
}

/** Returns the request of the next reply. An empty instruction is left out. */
export function requestOf(model: string, instructions: string, turns: readonly Turn[]) {
  const messages = turns.map(({ role, text, image }) => ({
    role,
    content: image
      ? [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: image } },
        ]
      : text,
  }))
  const system = instructions.trim()
  return { model, messages: system ? [{ role: 'system', content: system }, ...messages] : messages }
}

/** Returns the cosine similarity: 1 the same direction, 0 unrelated. Null: one of the vectors is zero. */
export function cosine(a: readonly number[], b: readonly number[]): number | null {
  const dot = (one: readonly number[], other: readonly number[]) => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0)
  const length = Math.sqrt(dot(a, a) * dot(b, b))
  return length === 0 ? null : dot(a, b) / length
}
