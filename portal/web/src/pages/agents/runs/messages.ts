/** A message of a stored conversation, with the parts that people read. */
interface ThreadMessage {
  readonly role: 'user' | 'assistant'
  readonly text: string
}

/** Returns the questions and answers among messages of the chat protocol. */
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

/** Returns the run of each answer, matched from the newest on. Older answers may have no stored run. */
export function runsOfAnswers(messages: readonly ThreadMessage[], newestFirst: readonly string[]): readonly (string | null)[] {
  const answers = messages.filter(({ role }) => role === 'assistant').length
  let answer = 0
  return messages.map(({ role }) => (role === 'assistant' ? (newestFirst[answers - ++answer] ?? null) : null))
}
