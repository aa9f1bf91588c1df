import type { executeQueryPlan } from '@apollo/gateway'
import type { GraphQLSchema } from 'graphql'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Prepared } from '../documents.ts'

export type Variables = Readonly<Record<string, unknown>>
export type RequestContext = Parameters<typeof executeQueryPlan>[2]

/** As much of Apollo Server's request context as Apollo's executor reads. */
export function requestContextOf(
  schema: GraphQLSchema,
  { document, hash, operation, operationName }: Prepared,
  variables: Variables,
  context: LinkContext,
): RequestContext {
  const read: Pick<
    RequestContext,
    'request' | 'schema' | 'document' | 'operation' | 'operationName' | 'queryHash' | 'context' | 'metrics'
  > = {
    request: { variables, ...(operationName !== undefined && { operationName }) },
    schema,
    document,
    operation,
    operationName: operationName ?? null,
    queryHash: hash,
    context,
    // The executor notes paths of errors here; without the object an error of a subgraph would be a TypeError.
    metrics: {},
  }
  return read as RequestContext
}
