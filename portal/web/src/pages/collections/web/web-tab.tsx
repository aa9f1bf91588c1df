import { Link } from '@tanstack/react-router'
import { Globe, RotateCw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useCalm, useRepeat } from '../../../data/calm.ts'
import { useAction, useEvents, useQueryResult } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../../parts/data-table.tsx'
import { Digits } from '../../../parts/digits.tsx'
import { ServiceText } from '../../../parts/service-text.tsx'
import { EmptyState, FailureNotice } from '../../../parts/states.tsx'
import { RelativeTime } from '../../../parts/time.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import { IconButton } from '../../../ui/button.tsx'
import { ConfirmDialog } from '../../../ui/dialog.tsx'
import { Badge } from '../../../ui/surface.tsx'
import { toast } from '../../../ui/toast.tsx'
import { AddAddress, REFRESH } from './add-address.tsx'
import { DELETE_SOURCE, DOCUMENT_MOVED, REFRESH_SOURCE, SOURCES, type Source } from './web.ts'

const PAGE_SIZE = 50
/** Between two questions, while many documents move. */
const PAUSE_MS = 1_500
/** While addresses wait to be fetched: no event tells that one could not be. */
const POLL_INTERVAL_MS = 5_000

/** The web addresses of a collection: those that it has, how each was fetched last, and the place for more. */
export function WebTab({ collectionId }: { readonly collectionId: string }) {
  const text = useText()
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  const paging = usePaging(collectionId, PAGE_SIZE)
  const result = useQueryResult(SOURCES, { id: collectionId, ...paging.variables }, { types: ['WebSource', 'Document', 'DeletePayload'] })
  const refreshSoon = useCalm(() => result.state === 'ready' && result.refresh(), PAUSE_MS)
  useEvents(DOCUMENT_MOVED, { collectionId }, refreshSoon)
  const isAnyWaiting = result.state === 'ready' && result.data.collection?.sources.edges.some(({ node }) => isWaiting(node))
  useRepeat(result, POLL_INTERVAL_MS, isAnyWaiting)
  const refreshing = useAction(REFRESH_SOURCE)
  const [busy, setBusy] = useState<string | null>(null)
  const [leaving, setLeaving] = useState<Source | null>(null)
  const refresh = async (id: string) => {
    setBusy(id)
    const done = await refreshing.run({ id })
    setBusy(null)
    if (done) toast(text('documents.webAdded'))
  }
  const columns: readonly Column<Source>[] = [
    {
      id: 'address',
      header: text('documents.webUrl'),
      className: 'max-w-60 sm:max-w-96',
      cell: ({ url, document }) => (
        <>
          <Code className="font-sans">{url}</Code>
          {document && (
            <Link
              to="/collections/$id/documents/$documentId"
              params={{ id: collectionId, documentId: document.id }}
              className="block text-sm text-accent-text underline-offset-4 hover:underline"
            >
              <UserText>{document.name}</UserText>
            </Link>
          )}
        </>
      ),
    },
    { id: 'status', header: text('documents.status'), className: 'min-w-44', cell: (source) => <SourceStatus source={source} /> },
    { id: 'checked', header: text('documents.webChecked'), shown: 'wide', cell: ({ checkedAt }) => <RelativeTime at={checkedAt} /> },
    { id: 'changed', header: text('documents.webChanged'), shown: 'wide', cell: ({ changedAt }) => <RelativeTime at={changedAt} /> },
    {
      id: 'refresh',
      header: text('documents.webRefresh'),
      shown: 'wide',
      cell: ({ refreshSeconds }) => <Interval seconds={refreshSeconds} />,
    },
    ...(mayWrite
      ? [
          {
            id: 'actions',
            header: '',
            className: 'w-20 whitespace-nowrap',
            cell: (source: Source) => (
              <>
                <IconButton
                  label={text('documents.webAgain', { url: source.url.slice(0, 120) })}
                  icon={RotateCw}
                  size="small"
                  isBusy={busy === source.id}
                  disabled={refreshing.isRunning}
                  onClick={() => void refresh(source.id)}
                />
                <IconButton
                  label={text('documents.webForget', { url: source.url.slice(0, 120) })}
                  icon={Trash2}
                  size="small"
                  onClick={() => setLeaving(source)}
                />
              </>
            ),
          },
        ]
      : []),
  ]
  return (
    <div className="flex flex-col gap-5">
      <p className="max-w-prose text-sm text-muted">{text('documents.webHelp')}</p>
      {mayWrite && <AddAddress collectionId={collectionId} />}
      <FailureNotice failure={refreshing.failure} />
      <div>
        <DataTable
          label={text('documents.web')}
          result={result}
          page={({ collection }) => collection?.sources ?? EMPTY_PAGE}
          paging={paging}
          columns={columns}
          rowId={({ id }) => id}
          empty={<EmptyState icon={Globe} title={text('documents.webNone')} />}
        />
      </div>
      <DeleteSourceDialog source={leaving} onClose={() => setLeaving(null)} />
    </div>
  )
}

const isWaiting = ({ checkedAt, errorReason }: Pick<Source, 'checkedAt' | 'errorReason'>) => checkedAt === null && errorReason === null

/** Whether the address could be fetched the last time, and if not, why. */
function SourceStatus({ source }: { readonly source: Source }) {
  const text = useText()
  const { error, errorReason } = source
  if (isWaiting(source)) return <Badge>{text('documents.webWaiting')}</Badge>
  if (!errorReason) return <Badge tone="success">{text('documents.webFetched')}</Badge>
  return (
    <div className="py-1 text-sm">
      <Badge tone="danger">{text('documents.webFailed')}</Badge>
      <p className="mt-1 text-danger-text">{text(`documents.webError.${errorReason}`)}</p>
      {error && (
        <p className="text-xs text-muted">
          <ServiceText>{error}</ServiceText>
        </p>
      )}
    </div>
  )
}

function Interval({ seconds }: { readonly seconds: number | null }) {
  const text = useText()
  const name = Object.entries(REFRESH).find(([, each]) => each === seconds)?.[0] as keyof typeof REFRESH | undefined
  if (name) return text(`documents.webRefresh.${name}`)
  return <Digits value={Math.round((seconds ?? 0) / 360) / 10} style="unit" unit="hour" unitDisplay="long" />
}

/** Asks before an address is fetched no more. */
function DeleteSourceDialog({ source, onClose }: { readonly source: Source | null; readonly onClose: () => void }) {
  const text = useText()
  const { run, failure } = useAction(DELETE_SOURCE)
  return (
    <ConfirmDialog
      isOpen={source !== null}
      onClose={onClose}
      isDangerous
      title={text('documents.webForgetTitle')}
      description={text('documents.webForgetHelp')}
      action={text('documents.webForgetAction')}
      onConfirm={async () => source !== null && (await run({ id: source.id })) !== null}
    >
      {source && <Code className="font-sans">{source.url}</Code>}
      <FailureNotice failure={failure} />
    </ConfirmDialog>
  )
}
