/** A message of a kept conversation, as far as people read it. */
interface ThreadMessage {
  readonly role: 'user' | 'assistant'
  readonly text: string
}

/** The questions and answers among messages of the chat protocol. */
export function readMessages(messages: readonly unknown[]): readonly ThreadMessage[] {
  return messages.flatMap((message) => {
    const { role, content } = (message ?? {}) as { readonly role?: unknown; readonly content?: unknown }
    const text = textOf(content)
    return (role === 'user' || role === 'assistant') && text !== '' ? [{ role, text }] : []
  })
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: { readonly text?: unknown } | null) => (typeof part?.text === 'string' ? part.text : ''))
    .filter((text) => text !== '')
    .join('\n\n')
}

/** The runs of the answers, from the newest on. Older answers may have no run any more. */
export function runsOfAnswers(messages: readonly ThreadMessage[], newestFirst: readonly string[]): readonly (string | null)[] {
  const answers = messages.filter(({ role }) => role === 'assistant').length
  let answer = 0
  return messages.map(({ role }) => (role === 'assistant' ? (newestFirst[answers - ++answer] ?? null) : null))
}
