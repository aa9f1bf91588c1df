import { initGraphQLTada } from 'gql.tada'
import type { introspection } from '../../../../schema/generated/gateway.ts'

/**
 * Writes a document of the public schema: `graphql('query Plan { viewer { id } }')`. The compiler reads its types from
 * the text, so a field that the schema does not have fails `npm run typecheck`.
 */
export const graphql = initGraphQLTada<{
  introspection: introspection
  scalars: {
    DateTime: string
    USD: string
    Cursor: string
    JSON: unknown
    ChatProtocolRequest: unknown
    ChatProtocolResponse: Readonly<Record<string, unknown>>
    ChatProtocolChunk: Readonly<Record<string, unknown>>
  }
  disableMasking: true
}>()

export type { ResultOf, VariablesOf } from 'gql.tada'
