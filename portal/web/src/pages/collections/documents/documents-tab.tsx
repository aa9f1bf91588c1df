import { getRouteApi, Link } from '@tanstack/react-router'
import { FileText, Globe, RotateCw, SearchX, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../../parts/data-table.tsx'
import { Digits } from '../../../parts/digits.tsx'
import { SearchBox } from '../../../parts/search-box.tsx'
import { EmptyState, FailureNotice } from '../../../parts/states.tsx'
import { RelativeTime } from '../../../parts/time.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Checkbox } from '../../../ui/choices.tsx'
import { classes } from '../../../ui/classes.ts'
import { ConfirmDialog } from '../../../ui/dialog.tsx'
import { Select } from '../../../ui/input.tsx'
import { toast } from '../../../ui/toast.tsx'
import type { CollectionFacts } from '../common/collections.ts'
import { type CollectionFilters, LIST_ORDERS, SORTS, STATUSES } from '../common/filters.ts'
import { COLLECTION_DOCUMENTS, DELETE_DOCUMENTS, type DocumentRow, RETRY_DOCUMENTS } from './documents.ts'
import { type LiveDocuments, useLiveDocuments } from './live.ts'
import { DocumentFailure, DocumentProgress, DocumentStatus, DocumentWarnings } from './status.tsx'
import { UploadPanel } from './upload-panel.tsx'

const route = getRouteApi('/collections/$id')
const PAGE_SIZE = 50
const SEARCH_PAGE_SIZE = 100

interface DocumentsTabProps {
  readonly collection: CollectionFacts
  readonly onChanged: () => void
}

/** The documents of a collection: uploads, and the state of each document. */
export function DocumentsTab({ collection, onChanged }: DocumentsTabProps) {
  const text = useText()
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  const { name, status, sort = 'newest' } = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: CollectionFilters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const paging = usePaging(`${name} ${status} ${sort}`, name ? SEARCH_PAGE_SIZE : PAGE_SIZE)
  const result = useQueryResult(
    COLLECTION_DOCUMENTS,
    { id: collection.id, ...paging.variables, ...SORTS[sort], status: status ?? null, filter: name ? { nameContains: name } : null },
    { types: ['Document', 'DeletePayload'] },
  )
  const live = useLiveDocuments(collection.id, result, onChanged)
  const rows = result.state === 'ready' ? (result.data.collection?.documents.edges.map(({ node }) => node) ?? []) : []
  const shownIds = rows.map(({ id }) => id)
  const chosenIds = shownIds.filter((id) => chosen.has(id))
  const columns = useColumns({ collectionId: collection.id, live, mayWrite, chosen, setChosen, shownIds })
  return (
    <>
      {mayWrite && <UploadPanel collection={collection} live={live} />}
      <StatusFilter collection={collection} status={status} onChange={(status) => change({ status })} />
      <search className="mb-4 flex flex-wrap gap-2">
        <div className="min-w-48 grow">
          <SearchBox label={text('documents.search')} value={name ?? ''} onChange={(name) => change({ name: name || undefined })} />
        </div>
        <Select
          className="w-auto min-w-40 max-sm:grow"
          aria-label={text('collections.sort')}
          value={sort}
          onChange={(sort) => change({ sort: sort === 'newest' ? undefined : sort })}
          options={LIST_ORDERS.map((value) => ({ value, label: text(`collections.sort.${value}`) }))}
        />
        <Button icon={Globe} onClick={() => change({ tab: 'web' })}>
          {text(mayWrite ? 'documents.webAdd' : 'documents.web')}
        </Button>
      </search>
      {mayWrite && <BulkBar collectionId={collection.id} ids={chosenIds} rows={rows} live={live} onDone={() => setChosen(new Set())} />}
      <DataTable
        label={text('documents.title')}
        result={result}
        page={({ collection }) => collection?.documents ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          name || status ? (
            <EmptyState
              icon={SearchX}
              title={text('common.nothingMatches')}
              actions={<Button onClick={() => change({ name: undefined, status: undefined })}>{text('collections.clearFilters')}</Button>}
            />
          ) : (
            <EmptyState icon={FileText} title={text('documents.none')}>
              {text(mayWrite ? 'documents.noneHelp' : 'documents.noneReader')}
            </EmptyState>
          )
        }
      />
    </>
  )
}

interface StatusFilterProps {
  readonly collection: CollectionFacts
  readonly status: CollectionFilters['status']
  readonly onChange: (status: CollectionFilters['status']) => void
}

/** The number of documents in each status. Each status is a filter. */
function StatusFilter({ collection: { documentCount, documentCounts }, status, onChange }: StatusFilterProps) {
  const text = useText()
  const counts = {
    QUEUED: documentCounts.queued,
    PROCESSING: documentCounts.processing,
    READY: documentCounts.ready,
    FAILED: documentCounts.failed,
  }
  return (
    <fieldset className="mb-3 flex flex-wrap gap-1.5">
      <legend className="sr-only">{text('documents.status')}</legend>
      {[undefined, ...STATUSES].map((value) => (
        <Button
          key={value ?? 'all'}
          size="small"
          aria-pressed={status === value}
          className="aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
          onClick={() => onChange(value)}
        >
          {text(value ? `documents.status.${value}` : 'common.all')}
          <span className={classes('tabular-nums', status !== value && 'text-muted')}>
            <Digits value={value ? counts[value] : documentCount} />
          </span>
        </Button>
      ))}
    </fieldset>
  )
}

interface BulkBarProps {
  readonly collectionId: string
  readonly ids: readonly string[]
  readonly rows: readonly DocumentRow[]
  readonly live: LiveDocuments
  readonly onDone: () => void
}

/** The actions on the chosen documents. */
function BulkBar({ collectionId, ids, rows, live, onDone }: BulkBarProps) {
  const text = useText()
  const { number } = useFormats()
  const retrying = useAction(RETRY_DOCUMENTS)
  const deleting = useAction(DELETE_DOCUMENTS)
  const [isConfirming, setConfirming] = useState(false)
  const failed = ids.filter((id) => {
    const row = rows.find((each) => each.id === id)
    const now = live.of(id) ?? row
    return now?.status === 'FAILED' || now?.replacement?.status === 'FAILED'
  })
  const report = (results: readonly { readonly error: unknown }[], done: 'documents.retried' | 'documents.deleted') => {
    const lost = results.filter(({ error }) => error).length
    if (lost > 0) toast(text('documents.notAll', { count: lost, shown: number(lost) }), 'danger')
    else toast(text(done, { count: results.length, shown: number(results.length) }))
    onDone()
  }
  return (
    <>
      <FailureNotice failure={retrying.failure ?? deleting.failure} />
      {ids.length > 0 && (
        <div
          role="toolbar"
          aria-label={text('documents.bulk')}
          className="mb-3 flex flex-wrap items-center gap-2 rounded-lg bg-accent-soft px-3 py-2"
        >
          <span role="status" className="grow text-sm font-medium text-accent-text">
            {text('documents.chosen', { count: ids.length, shown: number(ids.length) })}
          </span>
          {failed.length > 0 && (
            <Button
              size="small"
              icon={RotateCw}
              isBusy={retrying.isRunning}
              onClick={async () => {
                const done = await retrying.run({ input: { collectionId, ids: failed } })
                if (done) report(done.retryDocuments.results, 'documents.retried')
              }}
            >
              {text('documents.retryChosen', { count: failed.length, shown: number(failed.length) })}
            </Button>
          )}
          <Button size="small" icon={Trash2} onClick={() => setConfirming(true)}>
            {text('common.delete')}
          </Button>
          <Button size="small" variant="ghost" onClick={onDone}>
            {text('documents.chooseNone')}
          </Button>
        </div>
      )}
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        isDangerous
        title={text('documents.deleteTitle', { count: ids.length, shown: number(ids.length) })}
        description={text('documents.deleteHelp')}
        action={text('documents.deleteAction', { count: ids.length, shown: number(ids.length) })}
        onConfirm={async () => {
          const done = await deleting.run({ input: { collectionId, ids: [...ids] } })
          if (!done) return true
          report(done.deleteDocuments.results, 'documents.deleted')
          return true
        }}
      />
    </>
  )
}

interface ColumnsInput {
  readonly collectionId: string
  readonly live: LiveDocuments
  readonly mayWrite: boolean
  readonly chosen: ReadonlySet<string>
  readonly setChosen: (chosen: ReadonlySet<string>) => void
  readonly shownIds: readonly string[]
}

function useColumns({ collectionId, live, mayWrite, chosen, setChosen, shownIds }: ColumnsInput): readonly Column<DocumentRow>[] {
  const text = useText()
  const { bytes } = useFormats()
  const { run, isRunning } = useAction(RETRY_DOCUMENTS)
  const now = (row: DocumentRow): DocumentRow => ({ ...row, ...live.of(row.id) })
  const choose = (ids: readonly string[], isChosen: boolean) => {
    const next = new Set(chosen)
    for (const id of ids) isChosen ? next.add(id) : next.delete(id)
    setChosen(next)
  }
  const all = shownIds.length > 0 && shownIds.every((id) => chosen.has(id))
  const columns: readonly Column<DocumentRow>[] = [
    {
      id: 'name',
      header: text('documents.document'),
      className: 'max-w-36 sm:max-w-80',
      cell: (row) => {
        const { id, name, parent } = now(row)
        return (
          <>
            <Link
              to="/collections/$id/documents/$documentId"
              params={{ id: collectionId, documentId: id }}
              className="font-medium underline-offset-4 hover:underline"
            >
              <UserText>{name}</UserText>
            </Link>
            {parent && (
              <div className="text-xs text-muted">
                {text('documents.inside')} <UserText className="max-w-44">{parent.name}</UserText>
              </div>
            )}
          </>
        )
      },
    },
    {
      id: 'status',
      header: text('documents.status'),
      className: 'sm:min-w-40',
      cell: (row) => {
        const document = now(row)
        const { status, error, warnings, replacement } = document
        const isFailed = status === 'FAILED' || replacement?.status === 'FAILED'
        return (
          <div className="flex flex-col items-start gap-1.5 py-1">
            {status !== 'PROCESSING' && <DocumentStatus status={status} />}
            <DocumentProgress document={document} name={document.name} />
            {error && <DocumentFailure error={error} />}
            {replacement && <span className="text-xs text-muted">{text(`documents.replacement.${replacement.status}`)}</span>}
            <DocumentWarnings warnings={warnings} />
            {isFailed && mayWrite && (
              <Button
                size="small"
                icon={RotateCw}
                disabled={isRunning}
                aria-label={text('documents.retryOf', { name: document.name.slice(0, 80) })}
                onClick={() => void run({ input: { collectionId, ids: [row.id] } })}
              >
                {text('common.tryAgain')}
              </Button>
            )}
          </div>
        )
      },
    },
    {
      id: 'language',
      header: text('documents.language'),
      shown: 'wide',
      cell: (row) => {
        const { language } = now(row)
        return language === 'ar' || language === 'en' ? text(`documents.language.${language}`) : <span aria-hidden>—</span>
      },
    },
    { id: 'pages', header: text('documents.pages'), isNumber: true, shown: 'wide', cell: (row) => <Digits value={now(row).pageCount} /> },
    {
      id: 'passages',
      header: text('collections.chunks'),
      isNumber: true,
      shown: 'wide',
      cell: (row) => <Digits value={now(row).chunkCount} />,
    },
    {
      id: 'size',
      header: text('documents.size'),
      isNumber: true,
      shown: 'wide',
      className: 'whitespace-nowrap',
      cell: ({ file }) => bytes(file.sizeBytes),
    },
    { id: 'added', header: text('documents.added'), shown: 'wide', cell: ({ createdAt }) => <RelativeTime at={createdAt} /> },
  ]
  if (!mayWrite) return columns
  return [
    {
      id: 'choose',
      className: 'w-8 pe-0',
      header: (
        <Checkbox label={text('documents.chooseAll')} isLabelHidden checked={all} onChange={(isChosen) => choose(shownIds, isChosen)} />
      ),
      cell: ({ id, name }) => (
        <Checkbox
          label={text('documents.chooseOne', { name: name.slice(0, 80) })}
          isLabelHidden
          checked={chosen.has(id)}
          onChange={(isChosen) => choose([id], isChosen)}
        />
      ),
    },
    ...columns,
  ]
}
