import { escapeMarks } from '../../../common/untrusted-text.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { MAX_TOOL_CALLS } from './definition.ts'
import { MAX_CHUNKS } from './search-tools.ts'

/** Most passages that one run shows, so the marks that are reserved for it. */
export const MARKS_OF_RUN = MAX_TOOL_CALLS * MAX_CHUNKS

/** The highest mark in a history that counts. The rest up to 999,999,999 is left to the runs after it. */
const MAX_EARLIER_MARK = 900_000_000

/** For a model that reads a history with marks. An instruction, so that no model quotes it. */
export const EARLIER_MARKS_NOTICE = 'Never cite by a mark such as (#1): it belongs to an earlier message, and nothing can be found by it.'

/** The first mark above all marks in messages, which are given as JSON. */
export function firstFreeMark(...messages: readonly string[]): number {
  let highest = 0
  for (const json of messages)
    for (const [, digits] of json.matchAll(/\[#(\d{1,9})\]/g)) {
      const mark = Number(digits)
      if (mark > highest && mark <= MAX_EARLIER_MARK) highest = mark
    }
  return highest + 1
}

/**
 * The messages with their marks as `(#1)`. The run did not show these passages, so nothing may resolve them, and a model
 * can tell them from the marks of its own searches. Reasoning stays as it is, because vendors sign it.
 */
export function escapeEarlierMarks(messages: readonly ProtocolObject[]): readonly ProtocolObject[] {
  return messages.map(({ content, refusal, tool_calls: calls, function_call: called, ...message }) => ({
    ...message,
    ...(content !== undefined && { content: Array.isArray(content) ? content.map(escapePart) : escapeText(content) }),
    ...(refusal !== undefined && { refusal: escapeText(refusal) }),
    ...(calls !== undefined && { tool_calls: Array.isArray(calls) ? calls.map(escapeCall) : calls }),
    ...(called !== undefined && { function_call: escapeFields(called, ['arguments']) }),
  }))
}

function escapePart(part: unknown): unknown {
  return escapeFields(part, ['text', 'refusal'])
}

function escapeCall(call: unknown): unknown {
  const { function: called } = (call ?? {}) as ProtocolObject
  return called === undefined ? call : { ...(call as ProtocolObject), function: escapeFields(called, ['arguments']) }
}

function escapeFields(value: unknown, fields: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null) return value
  const texts = Object.entries(value).filter(([name]) => fields.includes(name))
  return { ...value, ...Object.fromEntries(texts.map(([name, text]) => [name, escapeText(text)])) }
}

function escapeText(text: unknown): unknown {
  return typeof text === 'string' ? escapeMarks(text) : text
}
