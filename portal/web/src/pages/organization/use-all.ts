import { useEffect, useState } from 'react'
import { type TypedDocumentNode, useClient } from 'urql'

/** Most pages of 100 that are read. */
const MAX_PAGES = 20

interface Page<Node> {
  readonly edges: readonly { readonly node: Node }[]
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null }
}

type All<Node> = { readonly state: 'loading' } | { readonly state: 'ready'; readonly data: readonly Node[]; readonly isAll: boolean }

/** Reads a list to its end. `isAll`: the list is complete. */
export function useAll<Data, Node>(query: TypedDocumentNode<Data, { after?: string | null }>, page: (data: Data) => Page<Node>): All<Node> {
  const client = useClient()
  const [all, setAll] = useState<All<Node>>({ state: 'loading' })
  // biome-ignore lint/correctness/useExhaustiveDependencies: `page` only picks a field of the answer.
  useEffect(() => {
    let isCurrent = true
    const read = async () => {
      const nodes: Node[] = []
      let after: string | null = null
      for (let count = 0; count < MAX_PAGES; count++) {
        const { data, error }: { data?: Data | undefined; error?: Error | undefined } = await client.query(query, { after }).toPromise()
        if (!isCurrent) return
        if (error || !data) return setAll({ state: 'ready', data: nodes, isAll: false })
        const { edges, pageInfo } = page(data)
        nodes.push(...edges.map(({ node }) => node))
        if (!pageInfo.hasNextPage) return setAll({ state: 'ready', data: nodes, isAll: true })
        after = pageInfo.endCursor
      }
      setAll({ state: 'ready', data: nodes, isAll: false })
    }
    void read()
    return () => {
      isCurrent = false
    }
  }, [client, query])
  return all
}
