import type { JsonObject } from '../http/route.ts'

/**
 * Whether the request asks to cache anything. The chat protocol has one field for the whole request: the vendor marks
 * its end, which is where clients put one of their marks, and finds earlier prefixes itself.
 */
export function wantsCache({ cache_control, system, tools, messages }: JsonObject): boolean {
  return isMark(cache_control) || hasMark(system) || hasMark(tools) || asList(messages).some((message) => hasMark(message?.content))
}

function hasMark(blocks: unknown): boolean {
  return asList(blocks).some((block) => isMark(block?.cache_control))
}

function isMark(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function asList(value: unknown): readonly (JsonObject | null)[] {
  return Array.isArray(value) ? value : []
}
