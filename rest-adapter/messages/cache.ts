import type { JsonObject } from '../http/route.ts'

/**
 * Whether anything of a request is to be kept in the vendor's cache. The chat protocol's field is for the whole request: the vendor marks the end
 * of it, which is where clients have one of their marks, and finds the others' beginnings by itself.
 */
export function asksForCache({ cache_control, system, tools, messages }: JsonObject): boolean {
  return isMark(cache_control) || hasMark(system) || hasMark(tools) || listOf(messages).some((message) => hasMark(message?.content))
}

function hasMark(blocks: unknown): boolean {
  return listOf(blocks).some((block) => isMark(block?.cache_control))
}

function isMark(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function listOf(value: unknown): readonly (JsonObject | null)[] {
  return Array.isArray(value) ? value : []
}
