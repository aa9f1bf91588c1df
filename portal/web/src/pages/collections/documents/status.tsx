import { TriangleAlert } from 'lucide-react'
import { useFindText, useFormats, useText } from '../../../i18n/text.tsx'
import { StatusBadge } from '../../../parts/badges.tsx'
import { ServiceText } from '../../../parts/service-text.tsx'
import { Progress, type Tone } from '../../../ui/surface.tsx'
import type { LiveDocument } from './documents.ts'

const TONES = { QUEUED: 'neutral', PROCESSING: 'info', READY: 'success', FAILED: 'danger' } as const satisfies Readonly<
  Record<string, Tone>
>

type Moving = Pick<LiveDocument, 'status' | 'stage' | 'progress'>

export function DocumentStatus({ status }: Pick<Moving, 'status'>) {
  return <StatusBadge tone={TONES[status]} label={`documents.status.${status}`} isActive={status === 'PROCESSING'} />
}

/** The progress of the ingestion: its step, and its share. */
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

/** Why a document failed, in words. With `isWhole` the service's own message is shown below. */
export function DocumentFailure({ error, isWhole }: { readonly error: NonNullable<LiveDocument['error']>; readonly isWhole?: boolean }) {
  const text = useText()
  return (
    <span className="text-sm text-danger-text">
      {text(`documents.error.${error.code}`)}
      {isWhole && error.code !== 'EMPTY' && (
        <span className="mt-0.5 block">
          <ServiceText>{error.message}</ServiceText>
        </span>
      )}
    </span>
  )
}

const MAX_PAGES = 12

/**
 * The missing parts of a document, in words, with the pages. The service's message is shown as in `DocumentFailure`.
 */
export function DocumentWarnings({ warnings, isWhole }: Pick<LiveDocument, 'warnings'> & { readonly isWhole?: boolean }) {
  const text = useText()
  const find = useFindText()
  const { number, list } = useFormats()
  if (warnings.length === 0) return null
  return (
    <ul className="flex flex-col gap-1 text-sm text-warning-text">
      {warnings.map(({ code, message, pages }) => (
        <li key={code} className="flex gap-1.5">
          <TriangleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
          <span>
            {find(`documents.warning.${code}`) ?? text('documents.otherWarning')}{' '}
            {pages.length > 0 &&
              text('documents.warningPages', {
                count: pages.length,
                more: Math.max(pages.length - MAX_PAGES, 0),
                pages: list(pages.slice(0, MAX_PAGES).map((page) => number(page))),
              })}
            {isWhole && (
              <span className="block">
                <ServiceText>{message}</ServiceText>
              </span>
            )}
          </span>
        </li>
      ))}
    </ul>
  )
}
