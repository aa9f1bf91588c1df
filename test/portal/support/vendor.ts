import { LLMock } from '@copilotkit/aimock'
import type { Json } from '../../support/client.ts'

/** What the speech model hears, whatever one says. */
export const HEARD = 'Welcome to the harbour. مرحبا'
/** What the model sees in a picture. */
export const SEEN = 'A lighthouse with a red lamp.'
/** The question whose texts the ranking model knows: the second answers it. */
export const RANKED = 'Where is the lamp?'

const PIECE = { chunkSize: 8, latency: 25 }
/** Slow enough that a reader sees an answer grow, also where the page and the store are busy. */
const SLOW_PIECE = { chunkSize: 8, latency: 250 }

interface Message {
  readonly role: string
  readonly content: string | readonly { readonly type: string; readonly text?: string }[] | null
}

/**
 * A vendor whose chat model searches for the question that it is asked, and answers with the first passage that it was
 * given and its mark. From numbered passages it answers with the beginning of the first and its number. Otherwise it says
 * the question again.
 */
export async function startVendor(): Promise<LLMock> {
  const vendor = await LLMock.create({ port: 0 })
  vendor
    .on({ hasToolResult: true }, ({ messages }) => ({ content: toReply(messages as readonly Message[]) }), SLOW_PIECE)
    .on({ endpoint: 'chat', predicate: ({ tools = [] }) => tools.length > 0 }, ({ messages, tools }) => ({
      toolCalls: [{ name: tools![0]!.function.name, arguments: JSON.stringify({ query: questionOf(messages as readonly Message[]) }) }],
    }))
    .on({ endpoint: 'chat', predicate: ({ messages }) => hasImage(messages as readonly Message[]) }, { content: SEEN }, PIECE)
    .on(
      { endpoint: 'chat', predicate: ({ messages }) => isAboutChunks(messages as readonly Message[]) },
      ({ messages }) => ({ content: toNumberedReply(messages as readonly Message[]) }),
      PIECE,
    )
    .on({ endpoint: 'chat' }, ({ messages }) => ({ content: `You said: ${questionOf(messages as readonly Message[])}` }), PIECE)
    .onRerank(RANKED, [
      { index: 1, relevance_score: 0.9 },
      { index: 0, relevance_score: 0.1 },
    ])
    .onTranscription({ transcription: { text: HEARD, duration: 2 } })
  return vendor
}

/** Adds the models of the vendor to a catalog, and one of its mock vendor that waits at the gate. */
export const withVendor =
  (vendor: LLMock) =>
  (catalog: string): string =>
    catalog
      .replace(
        'engines:\n',
        `engines:
  vendor: { kind: openai, base_url: "${vendor.url}/v1", api_key: "sk-vendor", badge: cloud }
  vendor-ranks: { kind: rerank, protocol: cohere, base_url: "${vendor.url}/v2", api_key: "sk-vendor", badge: cloud }
`,
      )
      .replace(
        'models:\n',
        `models:
  - { id: vendor-chat, engine: vendor, kind: chat, supports: [vision, tools], context_window: 128000, max_output_tokens: 1000, price: { input: "1", output: "2" } }
  - { id: vendor-embed, engine: vendor, kind: embedding, dimensions: 1536, context_window: 8192, price: { input: "1" } }
  - { id: mock-embed-gate, engine: mock, kind: embedding, dimensions: 8, context_window: 8192, price: { input: "1" } }
  - { id: vendor-rank, engine: vendor-ranks, kind: rerank, price: { search: "2" } }
  - { id: vendor-speech, engine: vendor, kind: transcription, price: { audio: "0.006" } }
`,
      )

function questionOf(messages: readonly Message[]): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('')
}

function hasImage(messages: readonly Message[]): boolean {
  const content = messages.at(-1)?.content
  return Array.isArray(content) && content.some(({ type }: { readonly type: string }) => type === 'image_url')
}

const isAboutChunks = ([first]: readonly Message[]) =>
  first?.role === 'system' && typeof first.content === 'string' && first.content.includes('numbered passages')

function toNumberedReply(messages: readonly Message[]): string {
  const [, text = ''] = /^\[1\] [^\n]*\n(.*)/.exec(questionOf(messages)) ?? []
  return `${text.slice(0, 60)} [1]`
}

function toReply(messages: readonly Message[]): string {
  const { results = [] } = JSON.parse(messages.at(-1)?.content as string) as Json
  if (results.length === 0) return 'I found nothing.'
  const [{ text, mark }] = results
  return `${text.replaceAll('\n', ' ')} ${mark}`
}
