import { expect, it } from 'vitest'
import { countedUsage } from '../../domain/tokens/usage.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { createRequestContext, parts } from '../../test-support/parts.ts'
import { completion, type Step, says } from '../../test-support/scripted-engine.ts'
import { callModel, toModelReply } from './model-step.ts'

const MIB = 2 ** 20
const signed = (index: number, length: number) => ({ type: 'reasoning.encrypted', data: 'x'.repeat(length), format: 'x', index })
const thinks = (delta: ProtocolObject): Step => [{ choices: [{ index: 0, delta, finish_reason: null }] }]

async function callWith(...thoughts: readonly ProtocolObject[]) {
  const { deps, far } = parts()
  far.streams.push([...thoughts.map(thinks), ...says('Noon.')])
  const request = { model: 'chat', messages: [{ role: 'user', content: 'When?' }] }
  const reply = await callModel(deps, createRequestContext(), request, () => undefined).catch((error: unknown) => error)
  return { reply, far }
}

it('stores all signed reasoning of a reply, in order', async () => {
  const details = Array.from({ length: 4 }, (_, index) => signed(index, MIB))
  const { reply } = await callWith({ reasoning_details: details.slice(0, 3) }, { reasoning_details: details.slice(3) })
  expect(reply).toMatchObject({ text: 'Noon.', message: { content: 'Noon.', reasoning_details: details } })
})

it('stores each part once, for cumulative and for incremental engines', async () => {
  const [first, second] = [signed(0, 10), signed(1, 10)]
  const callWithLists = (...lists: readonly ProtocolObject[][]) => callWith(...lists.map((reasoning_details) => ({ reasoning_details })))
  const expected = { message: { reasoning_details: [first, second] } }
  expect((await callWithLists([first], [first, second])).reply).toMatchObject(expected)
  expect((await callWithLists([first], [second])).reply).toMatchObject(expected)
  expect((await callWithLists([first], [first])).reply).toMatchObject({ message: { reasoning_details: [first, first] } })
})

it('accepts any number of parts', async () => {
  const many = Array(1_000_000).fill(1)
  const { reply } = await callWith({ reasoning_details: many })
  expect((reply as ReturnType<typeof toModelReply>).message.reasoning_details).toHaveLength(many.length)

  const message = { role: 'assistant', content: 'Noon.', reasoning_details: many }
  const response = completion({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
  expect(toModelReply({ response, usage: countedUsage(20, 5), cost: 0n, modelId: 'chat' }).message.reasoning_details).toHaveLength(
    many.length,
  )
})

it.each([
  ['reasoning', (index: number) => ({ reasoning_details: [signed(index, 4 * MIB)] })],
  ['calls', (index: number) => ({ tool_calls: [{ index, function: { name: 'f' }, extra_content: signed(index, 4 * MIB) }] })],
])('refuses more signatures of %s than a reply has, and cancels the engine', async (_what, toDelta) => {
  const { reply, far } = await callWith(...Array.from({ length: 9 }, (_, index) => toDelta(index)))
  expect(reply).toMatchObject({
    code: 'engine_error',
    message: 'The engine returned more than 33554432 characters of signed reasoning.',
  })
  expect(far.ended).toBe(1)
})
