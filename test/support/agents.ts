import type { Json } from './client.ts'
import type { Answering, VendorCloud } from './engines/vendor-cloud.ts'
import { OPENAI_WIRE, saying } from './engines/vendor-wires.ts'

export const ARABIC_FILE = `# دليل الموظف

## الإجازات
يحق لكل موظف ثلاثون يوماً من الإجازة السنوية مدفوعة الأجر. تُقدَّم طلبات الإجازة قبل أسبوعين على الأقل.

## العمل عن بعد
يسمح بالعمل من المنزل يومين في الأسبوع بعد موافقة المدير المباشر.
`
export const ENGLISH_FILE = `# Travel policy

## Flights
Employees book economy class for flights under six hours. Longer flights may be booked in business class.

## Expenses
Meals are reimbursed up to 60 dollars a day. Receipts must be handed in within thirty days.
`

/**
 * Returns a catalog with the embedded models and one cloud model of a simulated vendor. The cloud model costs 1 and 2
 * USD per million input and output tokens.
 */
export const agentCatalog = (cloud: VendorCloud) => `
engines:
  embedded: { kind: embedded, badge: local }
  vendor: { kind: openai, base_url: "${cloud.url}/v1", api_key: "sk-test", badge: cloud }
models:
  - id: e5-small-ar-en
    engine: embedded
    kind: embedding
    dimensions: 384
    context_window: 512
    mark_tokens: 2
    query_prefix: "query: "
    passage_prefix: "passage: "
    cosine_spread: 0.03
    price: { input: "0.01" }
  - { id: extractive, engine: embedded, kind: chat, context_window: 32000, max_output_tokens: 2048, price: { input: "0.01", output: "0.01" } }
  - { id: scripted, engine: vendor, kind: chat, supports: [tools, response_schema], context_window: 128000, max_output_tokens: 1000, price: { input: "1", output: "2" } }
  - { id: out-of-reach, engine: vendor, kind: chat, supports: [tools], context_window: 128000, max_output_tokens: 1000, price: { input: "1", output: "2" } }
`

/** Makes the vendor's model give these answers, one per call. It repeats the last one. */
export function script(cloud: VendorCloud, ...responders: readonly Answering[]): void {
  let next = 0
  cloud.answering = (response, received) => responders[Math.min(next++, responders.length - 1)]!(response, received)
}

export const says = (...pieces: readonly string[]): Answering => saying(OPENAI_WIRE, { text: pieces })

/** Returns an answer that is computed from the request. */
export const replies =
  (readWords: (body: Json) => string): Answering =>
  (response, received) =>
    says(readWords(received.body))(response, received)

/** Returns an answer that calls tools, given as `[name, arguments]`. */
export function calls(...wanted: readonly (readonly [string, unknown])[]): Answering {
  const toolCalls = wanted.map(([name, input], i) => ({ id: `call_${i}`, name, arguments: [JSON.stringify(input)] }))
  return saying(OPENAI_WIRE, { calls: toolCalls, ends: 'tools' })
}

/** Returns an answer that calls the model's only tool. */
export const searches =
  (query: string, more: object = {}): Answering =>
  (response, received) =>
    calls([received.body.tools[0].function.name, { query, ...more }])(response, received)

/** Returns the mark of the passage with these words in the request to the model. */
export function findMark(body: Json, words: string): string {
  const results: Json[] = body.messages.flatMap(({ role, content }: Json) => (role === 'tool' ? (JSON.parse(content).results ?? []) : []))
  const found = results.find((result) => result.text.includes(words))
  if (!found) throw new Error(`no passage with ${words} among ${JSON.stringify(results)}`)
  return found.mark
}
