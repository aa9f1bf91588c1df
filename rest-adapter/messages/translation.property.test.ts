import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { JsonObject } from '../http/route.ts'
import { MessageEvents } from './events.ts'
import { toMessage } from './message-response.ts'
import { toChatRequest } from './request.ts'

const usage = { promptTokens: 0, cachedPromptTokens: 0, cacheWritePromptTokens: 0, completionTokens: 0, totalTokens: 0 }
const never = () => 'unused'
const base64 = fc.uint8Array({ minLength: 1, maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64'))
const kind = fc.constantFrom('anthropic', 'bedrock', 'google')

const signedDetail = fc.oneof(
  fc.record({ type: fc.constant('reasoning.text'), text: fc.string({ minLength: 1 }), signature: base64, format: kind }),
  fc.record({ type: fc.constant('reasoning.encrypted'), data: base64, format: kind }),
)
const toolCall = fc
  .record({ input: fc.dictionary(fc.string(), fc.jsonValue()), name: fc.stringMatching(/^[a-z]{1,8}$/), signature: fc.option(base64) })
  .map(({ input, name, signature }) => ({
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
    ...(signature !== null && { extra_content: { google: { thought_signature: signature } } }),
  }))

/** Generates what a model of any vendor may write: signed or unsigned reasoning, text, tool calls. */
const reply = fc
  .record({
    text: fc.string(),
    reasoning: fc.oneof(fc.array(signedDetail, { maxLength: 3 }), fc.string({ minLength: 1 })),
    calls: fc.array(toolCall, { maxLength: 3 }),
  })
  .map(({ text, reasoning, calls }): JsonObject => {
    const details = typeof reasoning === 'string' ? [] : reasoning.map((detail, index) => ({ ...detail, index }))
    return {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(typeof reasoning === 'string' && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls.map((call, index) => ({ id: `call_${index}`, ...call })) }),
    }
  })

function translateContent(message: JsonObject): readonly JsonObject[] {
  const response = { id: 'a', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] }
  return toMessage({ response, warnings: [], usage }, false, never).content as readonly JsonObject[]
}

it('a reply that is sent back is the message that the engine returned', () => {
  fc.assert(
    fc.property(reply, (message) => {
      const content = translateContent(message)
      fc.pre(content.length > 0)
      const { request } = toChatRequest({ model: 'm', max_tokens: 1, messages: [{ role: 'assistant', content }] })
      const [back] = request.messages as readonly JsonObject[]
      // JSON has no text for `-0`, and the order of keys has no meaning.
      expect(withInputs(back!)).toEqual(withInputs(message))
    }),
  )
})

it('a reply streamed in chunks of any length has the blocks of the plain one', () => {
  fc.assert(
    fc.property(reply, fc.infiniteStream(fc.integer({ min: 1, max: 5 })), (message, lengths) => {
      const writer = new MessageEvents(false, never)
      const blocks: Record<string, unknown>[] = []
      const inputs: string[] = []
      const events = [
        ...cutDeltas(message, lengths).flatMap((delta) => writer.write({ choices: [{ index: 0, delta }] })),
        ...writer.end(usage),
      ]
      for (const { type, content_block, delta } of events) {
        if (type === 'content_block_start') {
          blocks.push({ ...(content_block as JsonObject) })
          inputs.push('')
        }
        if (type !== 'content_block_delta') continue
        const { text, thinking, signature, partial_json: json } = delta as Record<string, string | undefined>
        const block = blocks.at(-1)!
        if (text !== undefined) block.text = `${block.text}${text}`
        if (thinking !== undefined) block.thinking = `${block.thinking}${thinking}`
        if (signature !== undefined) block.signature = signature
        inputs[inputs.length - 1] += json ?? ''
      }
      const whole = blocks.map((block, index) => (block.type === 'tool_use' ? { ...block, input: JSON.parse(inputs[index]!) } : block))
      expect(whole).toEqual(translateContent(message))
    }),
  )
})

/** Returns the message with the arguments of its calls parsed. */
function withInputs(message: JsonObject): JsonObject {
  const calls = message.tool_calls as readonly { readonly function: { readonly name: string; readonly arguments: string } }[] | undefined
  if (!calls) return message
  const read = ({ function: { name, arguments: text } }: (typeof calls)[number]) => ({ name, input: JSON.parse(text) })
  return { ...message, tool_calls: calls.map((call) => ({ ...call, function: read(call) })) }
}

/**
 * Cuts a message into deltas as engines send them: reasoning before text before calls, each signature after the signed
 * piece.
 */
function cutDeltas(message: JsonObject, lengths: Iterator<number>): readonly JsonObject[] {
  const pieces = (text: string): string[] => {
    if (text === '') return []
    const { value } = lengths.next()
    return [text.slice(0, value), ...pieces(text.slice(value))]
  }
  const details = (message.reasoning_details ?? []) as readonly { readonly text?: string }[]
  const calls = (message.tool_calls ?? []) as readonly { readonly function: { readonly arguments: string } }[]
  return [
    { role: 'assistant', content: '' },
    ...pieces((message.reasoning_content as string | undefined) ?? '').map((text) => ({ reasoning_content: text })),
    ...details.flatMap(({ text = '' }, index) => [
      ...pieces(text).map((piece) => ({ reasoning_content: piece })),
      { reasoning_details: details.slice(0, index + 1) },
    ]),
    ...pieces((message.content as string | null) ?? '').map((content) => ({ content })),
    ...calls.flatMap(({ function: { arguments: text, ...named }, ...call }, index) => [
      { tool_calls: [{ ...call, index, function: { ...named, arguments: '' } }] },
      ...pieces(text).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
  ]
}
