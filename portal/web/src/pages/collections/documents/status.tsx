import { TriangleAlert } from 'lucide-react'
import { type MessageId, useFormats, useText } from '../../../i18n/text.tsx'
import { StatusBadge } from '../../../parts/badges.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Progress, type Tone } from '../../../ui/surface.tsx'
import type { LiveDocument } from './documents.ts'

const TONES = { QUEUED: 'neutral', PROCESSING: 'info', READY: 'success', FAILED: 'danger' } as const satisfies Readonly<
  Record<string, Tone>
>

type Moving = Pick<LiveDocument, 'status' | 'stage' | 'progress'>

export function DocumentStatus({ status }: Pick<Moving, 'status'>) {
  return <StatusBadge tone={TONES[status]} label={`documents.status.${status}`} isActive={status === 'PROCESSING'} />
}

/** Where the ingestion is: its step, and how far. */
export function DocumentProgress({ document, name }: { readonly document: Moving; readonly name: string }) {
  const text = useText()
  const { number } = useFormats()
  const { status, stage, progress } = document
  if (status !== 'PROCESSING') return null
  const step = text(stage ? `documents.stage.${stage}` : 'documents.stage.PARSING')
  return (
    <div className="min-w-32">
      <div className="mb-1 flex justify-between gap-2 text-xs text-muted">
        <span>{step}</span>
        {progress && progress.total > 0 && (
          <span className="tabular-nums">{text('documents.progress', { done: number(progress.done), total: number(progress.total) })}</span>
        )}
      </div>
      <Progress
        label={text('documents.progressOf', { name: name.slice(0, 80) })}
        value={progress && progress.total > 0 ? progress.done / progress.total : null}
      />
    </div>
  )
}

/** Why a document failed, in words. The service's own sentence is the title. */
export function DocumentFailure({ error }: { readonly error: NonNullable<LiveDocument['error']> }) {
  const text = useText()
  return (
    <span className="text-sm text-danger-text" title={error.message}>
      {text(`documents.error.${error.code}`)}
    </span>
  )
}

const WARNINGS: ReadonlySet<string> = new Set([
  'pages_without_text',
  'pages_unreadable',
  'pages_read_by_ocr',
  'ocr_low_confidence',
  'replaced_characters',
  'structure_lost',
  'attachments_not_read',
  'files_not_read',
])
const MAX_PAGES = 12

/** What is missing from a document, in words, with the pages. */
export function DocumentWarnings({ warnings }: Pick<LiveDocument, 'warnings'>) {
  const text = useText()
  const { number, list } = useFormats()
  if (warnings.length === 0) return null
  return (
    <ul className="flex flex-col gap-1 text-sm text-warning-text">
      {warnings.map(({ code, message, pages }) => (
        <li key={code} className="flex gap-1.5" title={message}>
          <TriangleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
          <span>
            {WARNINGS.has(code) ? text(`documents.warning.${code}` as MessageId) : <UserText isWhole>{message}</UserText>}{' '}
            {pages.length > 0 &&
              text('documents.warningPages', {
                count: pages.length,
                more: Math.max(pages.length - MAX_PAGES, 0),
                pages: list(pages.slice(0, MAX_PAGES).map((page) => number(page))),
              })}
          </span>
        </li>
      ))}
    </ul>
  )
}
