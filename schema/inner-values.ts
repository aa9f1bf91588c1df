import type { EnumTypeDefinitionNode } from 'graphql'

/** Enums whose values have other names in the code than their own in lower case. */
const OTHERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Scope: { KNOWLEDGE_READ: 'knowledge:read', KNOWLEDGE_WRITE: 'knowledge:write', BILLING_READ: 'billing:read' },
  UsageUnit: {
    INPUT_TOKENS: 'inputTokens',
    CACHED_INPUT_TOKENS: 'cachedInputTokens',
    CACHE_WRITE_TOKENS: 'cacheWriteTokens',
    OUTPUT_TOKENS: 'outputTokens',
    AUDIO_MILLISECONDS: 'audioMilliseconds',
    SEARCH_UNITS: 'searchUnits',
    PAGES: 'pages',
  },
}

/** Returns the name in the code of each value of an enum of the contract: `{ READY: 'ready' }`. */
export function innerValues({ name, values = [] }: EnumTypeDefinitionNode): Readonly<Record<string, string>> {
  return Object.fromEntries(
    values.map((value) => [value.name.value, OTHERS[name.value]?.[value.name.value] ?? value.name.value.toLowerCase()]),
  )
}
