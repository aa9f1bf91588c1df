import { Link } from '@tanstack/react-router'
import { Text as TextIcon } from 'lucide-react'
import { useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { usePaging } from '../../../parts/data-table.tsx'
import { MarkedText } from '../../../parts/marked-text.tsx'
import { EmptyState, WhenReady } from '../../../parts/states.tsx'
import { Pagination } from '../../../ui/pagination.tsx'
import { Card } from '../../../ui/surface.tsx'
import { ChunkLocation } from '../common/chunk-location.tsx'
import { DOCUMENT_CHUNKS } from './document.ts'

/** The chunks of a document in the order of its text. */
export function Chunks({ collectionId, documentId }: { readonly collectionId: string; readonly documentId: string }) {
  const text = useText()
  const { number } = useFormats()
  const paging = usePaging(documentId)
  const result = useQueryResult(DOCUMENT_CHUNKS, { id: documentId, ...paging.variables }, { types: ['Chunk'] })
  return (
    <WhenReady result={result}>
      {({ document }) => {
        if (!document || document.chunks.edges.length === 0) return <EmptyState icon={TextIcon} title={text('document.noChunks')} />
        const { edges, pageInfo, totalCount } = document.chunks
        return (
          <>
            {totalCount !== null && (
              <p role="status" className="mb-3 text-sm text-muted">
                {text('document.chunkCount', { count: totalCount, shown: number(totalCount) })}
              </p>
            )}
            <ol className="flex flex-col gap-3">
              {edges.map(({ node }) => (
                <li key={node.id}>
                  <Card className="sm:p-4">
                    <div className="mb-2 flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
                      <ChunkLocation headingPath={node.headingPath} pageStart={node.pageStart} pageEnd={node.pageEnd} />
                      <Link
                        to="/collections/$id/documents/$documentId"
                        params={{ id: collectionId, documentId }}
                        search={{ passage: node.id }}
                        className="ms-auto text-sm text-accent-text underline-offset-4 hover:underline"
                      >
                        {text('document.showInText')}
                      </Link>
                    </div>
                    <MarkedText text={node.text} marks={[]} className="text-sm" />
                  </Card>
                </li>
              ))}
            </ol>
            <Pagination
              isBusy={result.state === 'ready' && result.isRefreshing}
              onNewer={paging.newer}
              onOlder={pageInfo.hasNextPage && pageInfo.endCursor ? () => paging.older(pageInfo.endCursor!) : null}
            />
          </>
        )
      }}
    </WhenReady>
  )
}
