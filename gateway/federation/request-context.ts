import type { executeQueryPlan } from '@apollo/gateway'
import type { GraphQLSchema } from 'graphql'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { Prepared } from '../documents.ts'

export type Variables = Readonly<Record<string, unknown>>
export type RequestContext = Parameters<typeof executeQueryPlan>[2]

/** The part of Apollo Server's request context that Apollo's executor reads. */
export function buildRequestContext(
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
    // The executor notes the paths of errors here. Without the object, an error of a subgraph would become a TypeError.
    metrics: {},
  }
  return read as RequestContext
}
