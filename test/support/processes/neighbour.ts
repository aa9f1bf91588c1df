import { addDocument, type Caller, newCollection } from '../client.ts'

/**
 * The times of one tenant's requests in milliseconds, by kind. It repeats chats, streams, searches and documents, each
 * after its last answer.
 */
export type Times = Readonly<Record<'chat' | 'stream' | 'search' | 'document', readonly number[]>>

const MESSAGES = [{ role: 'user' as const, content: 'Hello' }]
/** The pause between two requests of a kind, so that the tenant causes little load. */
const PAUSE_MS = 50

/**
 * Sends requests for this time.
 * @throws {Error} if a request was refused or lost.
 */
export async function workAsNeighbour(caller: Caller, durationMs: number): Promise<Times> {
  const collection = (await newCollection(caller)).id
  await addDocument(caller, collection, 'first.txt', 'Meals are reimbursed up to 60 dollars a day.')
  const untilMs = performance.now() + durationMs
  const repeat = async (work: (index: number) => Promise<unknown>): Promise<number[]> => {
    const times: number[] = []
    for (let index = 0; performance.now() < untilMs; index++) {
      const startMs = performance.now()
      await work(index)
      times.push(performance.now() - startMs)
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
    return times
  }
  const [chat, stream, search, document] = await Promise.all([
    repeat(async () => {
      const { choices } = await caller.openai.chat.completions.create({ model: 'mock-chat', messages: MESSAGES })
      if (!choices[0]?.message.content) throw new Error('a chat had no answer')
    }),
    repeat(async () => {
      let text = ''
      for await (const chunk of await caller.openai.chat.completions.create({ model: 'mock-chat', messages: MESSAGES, stream: true }))
        text += chunk.choices[0]?.delta.content ?? ''
      if (text === '') throw new Error('a stream had no text')
    }),
    repeat(async () => {
      const { status, body } = await caller.rest('POST', `/v1/collections/${collection}/search`, { query: 'How much are meals?' })
      if (status !== 200 || body.data.length === 0) throw new Error(`a search was lost: ${status} ${JSON.stringify(body)}`)
    }),
    repeat(async (index) => {
      const { status, error } = await addDocument(caller, collection, `note-${index}.txt`, `Note ${index}: parking is free.`)
      if (status !== 'ready') throw new Error(`a document was lost: ${JSON.stringify(error)}`)
    }),
  ])
  return { chat, stream, search, document }
}
