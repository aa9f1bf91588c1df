import { describe, expect, it } from 'vitest'
import { KisError } from '../../subgraphs/common/errors.ts'
import { inResponsesNames, inResponsesWarning, type MessageOrigin, responsesParam } from './params.ts'

const origins: readonly MessageOrigin[] = [
  { path: 'instructions', content: 'instructions', parts: ['instructions'], calls: [] },
  { path: 'input[0]', content: 'input[0].content', parts: ['input[0].content[0]', 'input[0].content[1]'], calls: [] },
  { path: 'input[1]', content: 'input[2].content', parts: ['input[2].content[0]'], calls: ['input[3]', 'input[4]'] },
  { path: 'input[5]', content: 'input[5].output', parts: ['input[5].output'], calls: [] },
]

describe('Parameter path of the chat request', () => {
  for (const [param, expected] of [
    ['model', 'model'],
    ['messages', 'input'],
    ['messages[0].content', 'instructions'],
    ['messages[1]', 'input[0]'],
    ['messages[1].role', 'input[0].role'],
    ['messages[1].content[1].image_url.url', 'input[0].content[1].image_url'],
    ['messages[1].content[1].image_url.detail', 'input[0].content[1].detail'],
    ['messages[1].content[0].text', 'input[0].content[0].text'],
    ['messages[1].content[7]', 'input[0]'],
    ['messages[2].tool_calls[1].function.name', 'input[4].name'],
    ['messages[2].tool_calls[0].function.arguments', 'input[3].arguments'],
    ['messages[2].tool_calls[0].id', 'input[3].call_id'],
    ['messages[2].tool_calls[0].type', 'input[3].type'],
    ['messages[3].tool_call_id', 'input[5].call_id'],
    ['messages[3].content', 'input[5].output'],
    ['messages[9].content', 'input[9].content'],
    ['max_completion_tokens', 'max_output_tokens'],
    ['max_completion_tokens_of_mine', 'max_completion_tokens_of_mine'],
    ['reasoning_effort', 'reasoning.effort'],
    ['verbosity', 'text.verbosity'],
    ['response_format.type', 'text.format.type'],
    ['response_format.json_schema.schema.properties.a', 'text.format.schema.properties.a'],
    ['tools[2].function.parameters', 'tools[2].parameters'],
    ['tools[2].function', 'tools[2]'],
    ['tool_choice.function.name', 'tool_choice.name'],
    ['tool_choice.allowed_tools.tools[1].function.name', 'tool_choice.tools[1].name'],
    ['constructor', 'constructor'],
  ] as const) {
    it(`${param} is ${expected} to the caller`, () => expect(responsesParam(param, origins)).toBe(expected))
  }
})

it('renames a quoted path in an error text, and nothing else', () => {
  const error = new KisError('invalid_request', "'messages' must have 'json' to use `response_format`; messages are many.", {
    param: 'messages',
    retryAfterMs: 5,
    vendorCode: 'odd',
  })
  expect(inResponsesNames(error, origins)).toMatchObject({
    code: 'invalid_request',
    param: 'input',
    message: "'input' must have 'json' to use `text.format`; messages are many.",
    retryAfterMs: 5,
    vendorCode: 'odd',
  })
  const without = new KisError('engine_error', "The engine says 'messages'.")
  expect(inResponsesNames(without, origins)).toBe(without)
})

it('renames the field of a warning, and preserves other warnings', () => {
  expect(['response_format_not_honored', 'seed_not_honored', 'answered_by:max_completion_tokens'].map(inResponsesWarning)).toEqual([
    'text.format_not_honored',
    'seed_not_honored',
    'answered_by:max_completion_tokens',
  ])
})
