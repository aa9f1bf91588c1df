import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { expect } from 'vitest'

type Fields = Readonly<Record<string, unknown>>

const LAST = ['response.completed', 'response.incomplete', 'response.failed']
const DELTAS = [
  { delta: 'response.output_text.delta', done: 'response.output_text.done', text: 'text' },
  { delta: 'response.refusal.delta', done: 'response.refusal.done', text: 'refusal' },
  { delta: 'response.reasoning_text.delta', done: 'response.reasoning_text.done', text: 'text' },
  { delta: 'response.reasoning_summary_text.delta', done: 'response.reasoning_summary_text.done', text: 'text' },
  { delta: 'response.function_call_arguments.delta', done: 'response.function_call_arguments.done', text: 'arguments' },
]
const PARTS = [
  { added: 'response.content_part.added', done: 'response.content_part.done' },
  { added: 'response.reasoning_summary_part.added', done: 'response.reasoning_summary_part.done' },
]

/**
 * Asserts what holds for every stream of the Responses API, however it ends. Returns the response in its last event.
 */
export function assembleResponse(stream: readonly ResponseStreamEvent[]): Response {
  const events = stream as unknown as readonly (Fields & { readonly type: string })[]
  const of = (...types: readonly string[]) => events.filter(({ type }) => types.includes(type))
  const positionKey = ({ item_id, output_index, content_index, summary_index }: Fields) =>
    JSON.stringify([item_id, output_index, content_index ?? summary_index ?? null])

  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
  expect(of(...LAST)).toEqual([events.at(-1)])
  const final = events.at(-1)!.response as Response
  expect(of('response.created', 'response.in_progress').map(({ response }) => (response as Response).id)).toEqual([final.id, final.id])
  expect(`response.${final.status}`).toBe(events.at(-1)!.type)
  expect(final.usage).toMatchObject({ total_tokens: expect.any(Number) })

  const added = of('response.output_item.added')
  const done = of('response.output_item.done').toSorted((a, b) => Number(a.output_index) - Number(b.output_index))
  expect(added.map(({ output_index }) => output_index)).toEqual(added.map((_, index) => index))
  const identity = ({ output_index, item }: Fields) => [output_index, (item as Fields).id, (item as Fields).type]
  expect(done.map(identity)).toEqual(added.map(identity))
  expect(done.map(({ item }) => item)).toEqual(final.output)

  for (const { added: opened, done: closed } of PARTS)
    expect(of(closed).map(positionKey).toSorted()).toEqual(of(opened).map(positionKey).toSorted())
  for (const { delta, done: closed, text } of DELTAS) {
    const texts = new Map<string, string>(of(closed).map((event) => [positionKey(event), '']))
    for (const event of of(delta)) texts.set(positionKey(event), (texts.get(positionKey(event)) ?? '') + event.delta)
    expect(Object.fromEntries(texts)).toEqual(Object.fromEntries(of(closed).map((event) => [positionKey(event), event[text]])))
  }
  return final
}
