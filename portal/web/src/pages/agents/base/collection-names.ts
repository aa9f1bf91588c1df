import { useMemo } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useQueryResult } from '../../../data/query-result.ts'
import { COLLECTIONS } from './agents.ts'

/** The names of the collections by id; none for a key that may not read them. */
export function useCollectionNames(): ReadonlyMap<string, string> {
  const result = useQueryResult(COLLECTIONS, {}, { pause: !useScope('KNOWLEDGE_READ'), types: ['Collection'] })
  const edges = result.state === 'ready' ? result.data.collections?.edges : undefined
  return useMemo(() => new Map(edges?.map(({ node }) => [node.id, node.name] as const)), [edges])
}
