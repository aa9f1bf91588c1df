/** One subscription as it is sent. The client of graphql-ws reads this object at each attempt. */
export interface Sent {
  query: string
  variables: Record<string, unknown>
}

const START = /^\s*subscription\b[^{]*\{\s*chatCompletion\s*\([^)]*\)/

/**
 * Changes a chat completion after an event, so that a new attempt follows the same call from that event on. Unchanged,
 * it would be a second call, which costs again.
 */
export function resumeAfter(sent: Sent, data: unknown): void {
  const { chatCompletion: event } = (data ?? {}) as { chatCompletion?: { id?: unknown; cursor?: unknown } | null }
  if (typeof event?.id !== 'string' || typeof event.cursor !== 'string') return
  sent.query = sent.query.replace(
    START,
    'subscription Resume($id: ID!, $after: Cursor) { chatCompletion: chatCompletionEvents(id: $id, after: $after)',
  )
  sent.variables = { id: event.id, after: event.cursor }
}
