import { Link } from '@tanstack/react-router'
import { FileText } from 'lucide-react'
import { Popover } from 'radix-ui'
import { Suspense } from 'react'
import { lazyPart } from '../../../data/lazy-part.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { harmless, UserText } from '../../../parts/user-text.tsx'
import type { Citation } from './runs.ts'

const Markdown = lazyPart(() => import('./markdown.tsx'), 'Markdown')

interface AnswerProps {
  readonly source: string
  /** Empty while the answer is streamed: its marks are numbers then. */
  readonly citations: readonly Citation[]
}

/** An agent's answer, with chips that open its citations. */
export function Answer({ source, citations }: AnswerProps) {
  const shown = harmless(source)
  const mark = (number: number) => <Mark number={number} citation={citations.find(({ mark }) => mark === number)} />
  return (
    <Suspense
      fallback={
        <p dir="auto" className="wrap-anywhere whitespace-pre-wrap">
          {shown}
        </p>
      }
    >
      <Markdown source={shown} mark={mark} />
    </Suspense>
  )
}

const CHIP =
  'mx-0.5 inline-flex h-6 min-w-6 items-center justify-center rounded-md bg-accent-soft px-1.5 align-middle text-xs font-medium text-accent-text tabular-nums'

export function Mark({ number, citation }: { readonly number: number; readonly citation: Citation | undefined }) {
  const text = useText()
  const formats = useFormats()
  const shown = formats.number(number)
  if (!citation) return <span className={CHIP}>{shown}</span>
  return (
    <Popover.Root>
      <Popover.Trigger aria-label={text('agents.citation', { mark: shown, file: citation.fileName })} className={`${CHIP} hover:underline`}>
        {shown}
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          sideOffset={6}
          collisionPadding={12}
          aria-label={text('agents.citation', { mark: shown, file: citation.fileName })}
          className="z-50 flex max-h-80 w-96 max-w-[calc(100vw-1.5rem)] animate-rise flex-col rounded-xl border bg-raised shadow-raised outline-none"
        >
          <CitationText citation={citation} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  )
}

function CitationText({ citation }: { readonly citation: Citation }) {
  const text = useText()
  const { chunkId, collection, document } = citation
  return (
    <>
      <header className="border-b px-4 py-2.5 text-sm">
        <CitationLocation citation={citation} />
      </header>
      <blockquote
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by the keyboard.
        tabIndex={0}
        dir="auto"
        className="min-h-0 grow overflow-y-auto px-4 py-3 text-sm wrap-anywhere whitespace-pre-wrap"
      >
        {harmless(citation.text)}
      </blockquote>
      <footer className="border-t px-4 py-2.5 text-sm">
        {collection && document ? (
          <Link
            to={`/collections/${collection.id}/documents/${document.id}` as string}
            search={{ passage: chunkId } as never}
            className="font-medium text-accent-text underline-offset-4 hover:underline"
          >
            {text('agents.openChunk')}
          </Link>
        ) : (
          <span className="text-muted">{text('agents.documentGone')}</span>
        )}
      </footer>
    </>
  )
}

/** The file of a citation, and its page. */
export function CitationLocation({ citation: { fileName, pageStart, pageEnd } }: { readonly citation: Citation }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <span className="flex min-w-0 items-center gap-2">
      <FileText className="size-4 shrink-0 text-muted" aria-hidden />
      <UserText className="min-w-0 font-medium">{fileName}</UserText>
      {pageStart !== null && (
        <span className="shrink-0 text-muted">
          {pageEnd === null || pageEnd === pageStart
            ? text('agents.page', { page: number(pageStart) })
            : text('agents.pageRange', { from: number(pageStart), to: number(pageEnd) })}
        </span>
      )}
    </span>
  )
}
