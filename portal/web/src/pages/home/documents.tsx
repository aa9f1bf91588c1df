import { Link } from '@tanstack/react-router'
import { RotateCw } from 'lucide-react'
import { useScope } from '../../app/session.tsx'
import { useAction } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Progress } from '../../ui/surface.tsx'
import { type HomeDocument, RETRY } from './home.ts'

const MAX_SHOWN = 6

interface DocumentsProps {
  readonly inWork: readonly HomeDocument[]
  readonly failed: readonly HomeDocument[]
  /** How many there are of each in all. */
  readonly counts: { readonly queued: number; readonly processing: number; readonly ready: number; readonly failed: number }
}

/** Documents that the service works on now, and those that it could not read. */
export function Documents({ inWork, failed, counts }: DocumentsProps) {
  const text = useText()
  const { number } = useFormats()
  const working = Math.max(counts.queued + counts.processing, inWork.length)
  const lost = Math.max(counts.failed, failed.length)
  return (
    <>
      <Card aria-labelledby="in-work">
        <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
          <h2 id="in-work" className="text-base">
            {text('home.inWork')}
          </h2>
          <p role="status" className="text-sm text-muted">
            {text('home.ready', { count: counts.ready, shown: number(counts.ready) })}
          </p>
        </div>
        {inWork.length === 0 ? (
          <p className="text-sm text-muted">{text('home.inWorkNone')}</p>
        ) : (
          <ul className="flex flex-col divide-y">
            {inWork.slice(0, MAX_SHOWN).map((document) => (
              <li
                key={document.id}
                className="grid items-center gap-x-6 gap-y-2 py-2.5 first:pt-0 last:pb-0 sm:grid-cols-[minmax(0,1fr)_12rem]"
              >
                <Name document={document} />
                <Step document={document} />
              </li>
            ))}
          </ul>
        )}
        {working > MAX_SHOWN && <More count={working - MAX_SHOWN} />}
      </Card>
      {failed.length > 0 && (
        <Card aria-labelledby="failed">
          <div className="mb-3 flex items-center gap-2">
            <h2 id="failed" className="text-base">
              {text('home.failed')}
            </h2>
            <Badge tone="danger">{number(lost)}</Badge>
          </div>
          <ul className="flex flex-col divide-y">
            {failed.slice(0, MAX_SHOWN).map((document) => (
              <Failed key={document.id} document={document} />
            ))}
          </ul>
          {lost > MAX_SHOWN && <More count={lost - Math.min(failed.length, MAX_SHOWN)} />}
        </Card>
      )}
    </>
  )
}

function More({ count }: { readonly count: number }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <p className="mt-3 text-sm">
      <Link to="/collections" className="text-accent-text underline-offset-4 hover:underline">
        {text('home.more', { count, shown: number(count) })}
      </Link>
    </p>
  )
}

function Name({ document: { id, name, collection } }: { readonly document: HomeDocument }) {
  return (
    <div className="min-w-0">
      {collection ? (
        <>
          <Link
            to="/collections/$id/documents/$documentId"
            params={{ id: collection.id, documentId: id }}
            className="block text-sm font-medium underline-offset-4 hover:underline"
          >
            <UserText>{name}</UserText>
          </Link>
          <UserText className="text-xs text-muted">{collection.name}</UserText>
        </>
      ) : (
        <UserText className="text-sm font-medium">{name}</UserText>
      )}
    </div>
  )
}

/** How far the service is with it. */
function Step({ document: { name, status, stage, progress } }: { readonly document: HomeDocument }) {
  const text = useText()
  const { number } = useFormats()
  if (status !== 'PROCESSING') return <span className="text-xs text-muted">{text(`documents.status.${status}`)}</span>
  const isCounted = progress !== null && progress.total > 0
  return (
    <div>
      <div className="mb-1 flex justify-between gap-2 text-xs text-muted">
        <span>{text(`documents.stage.${stage ?? 'PARSING'}`)}</span>
        {isCounted && (
          <span className="tabular-nums">{text('documents.progress', { done: number(progress.done), total: number(progress.total) })}</span>
        )}
      </div>
      <Progress
        label={text('documents.progressOf', { name: name.slice(0, 80) })}
        value={isCounted ? progress.done / progress.total : null}
      />
    </div>
  )
}

function Failed({ document }: { readonly document: HomeDocument }) {
  const text = useText()
  const canWrite = useScope('KNOWLEDGE_WRITE')
  const retry = useAction(RETRY)
  const { id, error } = document
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 py-2.5 first:pt-0 last:pb-0">
      <div id={`failed-${id}`} className="min-w-0 grow basis-56">
        <Name document={document} />
        {error && <p className="mt-0.5 text-sm text-danger-text">{text(`documents.error.${error.code}`)}</p>}
      </div>
      {canWrite && (
        <Button
          size="small"
          icon={RotateCw}
          isBusy={retry.isRunning}
          aria-describedby={`failed-${id}`}
          onClick={() => void retry.run({ id })}
        >
          {text('common.tryAgain')}
        </Button>
      )}
      {retry.failure && (
        <div className="basis-full">
          <FailureNotice failure={retry.failure} />
        </div>
      )}
    </li>
  )
}
