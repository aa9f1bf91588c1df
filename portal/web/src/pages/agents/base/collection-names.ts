import { useMemo } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useAnswer } from '../../../data/answer.ts'
import { COLLECTIONS } from './agents.ts'

/** The names of the collections by id; none for a key that may not read them. */
export function useCollectionNames(): ReadonlyMap<string, string> {
  const answer = useAnswer(COLLECTIONS, {}, { pause: !useScope('KNOWLEDGE_READ'), types: ['Collection'] })
  const edges = answer.state === 'ready' ? answer.data.collections?.edges : undefined
  return useMemo(() => new Map(edges?.map(({ node }) => [node.id, node.name] as const)), [edges])
}
