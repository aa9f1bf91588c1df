import { getRouteApi } from '@tanstack/react-router'
import { ChevronLeft, ChevronRight, FileText } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { MarkedText } from '../../../parts/marked-text.tsx'
import { EmptyState, Loading, WhenReady } from '../../../parts/states.tsx'
import { Button } from '../../../ui/button.tsx'
import { Card, Notice } from '../../../ui/surface.tsx'
import { ChunkLocation } from '../common/chunk-location.tsx'
import { CHUNK, DOCUMENT_TEXT, type DocumentFacts, type PageBoxes } from './document.ts'
import { PageSketch } from './page-sketch.tsx'

const route = getRouteApi('/collections/$id/documents/$documentId')
/** Characters that are shown at once of a document without pages. */
const PART_CHARS = 16_384
/** Characters that are shown before a chunk of such a document. */
const BEFORE_CHARS = 1_500

interface Chunk {
  readonly id: string
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  readonly pageBoxes: readonly PageBoxes[] | null
}

/** The text of a document: at the chunk of the address, or by page. */
export function TextView({ document }: { readonly document: DocumentFacts }) {
  const text = useText()
  const { passage } = route.useSearch()
  const result = useQueryResult(CHUNK, { id: passage ?? '' }, { pause: passage === undefined, types: ['Chunk'] })
  if (document.status !== 'READY') {
    return (
      <EmptyState icon={FileText} title={text('document.noText')}>
        {text('document.noTextHelp')}
      </EmptyState>
    )
  }
  if (passage === undefined) return <Reader key="pages" document={document} chunk={null} />
  return (
    <WhenReady result={result}>
      {({ node }) => {
        const found = node?.__typename === 'Chunk' && node.document.id === document.id ? node : null
        return (
          <>
            {!found && (
              <div className="mb-4">
                <Notice tone="warning">{text('document.chunkGone')}</Notice>
              </div>
            )}
            <Reader key={found?.id ?? 'pages'} document={document} chunk={found} />
          </>
        )
      }}
    </WhenReady>
  )
}

function Reader({ document, chunk }: { readonly document: DocumentFacts; readonly chunk: Chunk | null }) {
  const { page } = route.useSearch()
  const [offset, setOffset] = useState(chunk ? Math.max(chunk.charStart - BEFORE_CHARS, 0) : 0)
  const isPaged = document.pageCount !== null && document.pageCount > 0
  const pageStart = page ?? chunk?.pageStart ?? 1
  const pageEnd = page === undefined && chunk?.pageEnd ? chunk.pageEnd : pageStart
  const where = isPaged
    ? { pageStart, pageEnd, offset: null, length: null }
    : { pageStart: null, pageEnd: null, offset, length: PART_CHARS }
  const result = useQueryResult(DOCUMENT_TEXT, { id: document.id, ...where })
  const shown = useRef<HTMLDivElement>(null)
  const isReady = result.state === 'ready'
  const isShown = useRef(false)
  // Scrolls once, when the chunk of a link is loaded.
  useEffect(() => {
    if (!isReady || !chunk || isShown.current) return
    isShown.current = true
    shown.current?.querySelector('mark')?.scrollIntoView({ block: 'center' })
  }, [isReady, chunk])
  return (
    <div className="flex flex-col gap-4">
      {chunk && <ChunkHeader chunk={chunk} />}
      <WhenReady result={result} loading={<Loading lines={6} />}>
        {({ document: found }) => {
          const part = found?.text
          if (!part) return null
          const mark = chunk ? [{ start: chunk.charStart - part.charStart, end: chunk.charEnd - part.charStart }] : []
          return (
            <>
              <div ref={shown}>
                <Card aria-busy={isReady && result.isRefreshing}>
                  <MarkedText text={part.text} marks={mark} className="max-w-3xl leading-relaxed" />
                </Card>
              </div>
              {isPaged ? (
                <PageMover from={pageStart} to={pageEnd} last={document.pageCount ?? 1} />
              ) : (
                <PartMover offset={part.charStart} next={part.nextOffset} total={part.totalChars} onMove={setOffset} />
              )}
            </>
          )
        }}
      </WhenReady>
    </div>
  )
}

function ChunkHeader({ chunk }: { readonly chunk: Chunk }) {
  const text = useText()
  return (
    <div className="flex flex-wrap gap-4">
      <div className="min-w-0 grow basis-60">
        <h2 className="text-sm">{text('document.chunk')}</h2>
        <ChunkLocation {...chunk} />
        <p className="mt-1 text-sm text-muted">{text('document.chunkHelp')}</p>
      </div>
      {chunk.pageBoxes && chunk.pageBoxes.length > 0 && (
        <div className="flex gap-3">
          {chunk.pageBoxes.map((page) => (
            <PageSketch key={page.page} page={page} />
          ))}
        </div>
      )}
    </div>
  )
}

function PageMover({ from, to, last }: { readonly from: number; readonly to: number; readonly last: number }) {
  const text = useText()
  const { number } = useFormats()
  const navigate = route.useNavigate()
  const move = (page: number) =>
    void navigate({ search: (now) => ({ ...now, view: 'text' as const, page }), replace: true, resetScroll: false })
  return (
    <nav aria-label={text('common.pages')} className="flex flex-wrap items-center justify-between gap-2">
      <Button size="small" disabled={from <= 1} onClick={() => move(from - 1)}>
        <ChevronLeft className="size-4 rtl:-scale-x-100" aria-hidden />
        {text('document.previousPage')}
      </Button>
      <span role="status" className="text-sm text-muted">
        {from === to
          ? text('document.pageOf', { page: number(from), last: number(last) })
          : text('document.pageRange', { from: number(from), to: number(to) })}
      </span>
      <Button size="small" disabled={to >= last} onClick={() => move(to + 1)}>
        {text('document.nextPage')}
        <ChevronRight className="size-4 rtl:-scale-x-100" aria-hidden />
      </Button>
    </nav>
  )
}

interface PartMoverProps {
  readonly offset: number
  readonly next: number | null
  readonly total: number
  readonly onMove: (offset: number) => void
}

function PartMover({ offset, next, total, onMove }: PartMoverProps) {
  const text = useText()
  const { percent } = useFormats()
  if (offset === 0 && next === null) return null
  return (
    <nav aria-label={text('common.pages')} className="flex flex-wrap items-center justify-between gap-2">
      <Button size="small" disabled={offset === 0} onClick={() => onMove(Math.max(offset - PART_CHARS, 0))}>
        <ChevronLeft className="size-4 rtl:-scale-x-100" aria-hidden />
        {text('document.previousPart')}
      </Button>
      <span role="status" className="text-sm text-muted">
        {text('document.partAt', { share: percent(total > 0 ? offset / total : 0) })}
      </span>
      <Button size="small" disabled={next === null} onClick={() => next !== null && onMove(next)}>
        {text('document.nextPart')}
        <ChevronRight className="size-4 rtl:-scale-x-100" aria-hidden />
      </Button>
    </nav>
  )
}
