import { getRouteApi, Link } from '@tanstack/react-router'
import { Download, ReceiptText, RefreshCw, SearchX } from 'lucide-react'
import { useState } from 'react'
import { useClient } from 'urql'
import { type Failure, toFailure } from '../../data/failure.ts'
import { useEvents, useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Money } from '../../parts/money.tsx'
import { EmptyState, FailureNotice, NotFound, WhenReady } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Sheet } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { toast } from '../../ui/toast.tsx'
import { MAX_ROWS, toCsv } from './csv.ts'
import type { Filters } from './filters.ts'
import { Receipt } from './receipt.tsx'
import { RECORD, RECORDED, RECORDS, type UsageRecord } from './usage.ts'

interface RecordsProps {
  readonly filters: Filters
  readonly onChange: (next: Filters) => void
}

/** Each call that was charged, newest first. */
export function Records({ filters, onChange }: RecordsProps) {
  const text = useText()
  const { number } = useFormats()
  const [news, setNews] = useState(0)
  const { model, key, request } = filters
  const filter = request ? { requestId: request } : { modelId: model ?? null, apiKeyId: key ?? null }
  const paging = usePaging(JSON.stringify(filter))
  const result = useQueryResult(RECORDS, { ...paging.variables, filter })
  useEvents(RECORDED, {}, () => setNews((now) => now + 1))
  const isFiltered = Boolean(request || model || key)
  const refresh = () => {
    setNews(0)
    if (result.state === 'ready') result.refresh()
  }
  return (
    <>
      <search className="mb-4 flex flex-wrap gap-2">
        <Input
          type="search"
          // What stands there before an id is text of the page.
          dir={request ? 'ltr' : undefined}
          className="max-w-sm grow"
          aria-label={text('usage.byRequest')}
          placeholder={text('usage.byRequest')}
          value={request ?? ''}
          onChange={({ target }) => onChange({ request: target.value.trim() || undefined })}
        />
        {isFiltered && (
          <Button onClick={() => onChange({ request: undefined, model: undefined, key: undefined })}>{text('usage.clearFilters')}</Button>
        )}
        <div className="ms-auto flex flex-wrap gap-2">
          {news > 0 && (
            <Button icon={RefreshCw} onClick={refresh}>
              {text('usage.news', { count: news, shown: number(news) })}
            </Button>
          )}
          <Export filter={filter} />
        </div>
      </search>
      <DataTable
        label={text('usage.records')}
        result={result}
        page={({ usage }) => usage ?? EMPTY_PAGE}
        paging={paging}
        columns={useColumns()}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={isFiltered ? SearchX : ReceiptText} title={text(isFiltered ? 'common.nothingMatches' : 'usage.none')}>
            {isFiltered ? null : text('usage.noneHelp')}
          </EmptyState>
        }
      />
      <OpenRecord id={filters.record} onClose={() => onChange({ record: undefined })} />
    </>
  )
}

function useColumns(): readonly Column<UsageRecord>[] {
  const text = useText()
  return [
    {
      id: 'at',
      header: text('usage.at'),
      cell: ({ id, at }) => <RecordLink id={id} at={at} />,
    },
    {
      id: 'operation',
      header: text('usage.operation'),
      cell: ({ operation, model }) => (
        <>
          {text(`usage.operation.${operation}`)}
          {model && (
            <div className="text-xs text-muted">
              <Code className="max-w-40 font-sans">{model.id}</Code>
            </div>
          )}
        </>
      ),
    },
    {
      id: 'key',
      header: text('usage.key'),
      cell: ({ apiKey }) => apiKey && <UserText className="max-w-40">{apiKey.name}</UserText>,
      shown: 'wide',
    },
    { id: 'amount', header: text('usage.measure.amount'), cell: ({ amount }) => <Money amount={amount} />, isNumber: true },
  ]
}

function RecordLink({ id, at }: { readonly id: string; readonly at: string }) {
  const filters = getRouteApi('/usage').useSearch()
  return (
    <Link
      from="/usage"
      to="/usage"
      search={{ ...filters, record: id }}
      resetScroll={false}
      className="font-medium underline-offset-4 hover:underline"
    >
      <DateTime at={at} />
    </Link>
  )
}

function OpenRecord({ id, onClose }: { readonly id: string | undefined; readonly onClose: () => void }) {
  const text = useText()
  const result = useQueryResult(RECORD, { id: id ?? '' }, { pause: id === undefined })
  return (
    <Sheet isOpen={id !== undefined} onClose={onClose} title={text('usage.receipt')}>
      {id !== undefined && (
        <WhenReady result={result}>{({ node }) => (node && 'amount' in node ? <Receipt record={node} /> : <NotFound />)}</WhenReady>
      )}
    </Sheet>
  )
}

/** Reads page after page, and gives the browser one file. */
function Export({ filter }: { readonly filter: object }) {
  const text = useText()
  const { number } = useFormats()
  const client = useClient()
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure | null>(null)
  const save = async () => {
    setBusy(true)
    setFailure(null)
    const records: UsageRecord[] = []
    let after: string | null = null
    let hasMore = true
    while (hasMore && records.length < MAX_ROWS) {
      const { data, error } = await client.query(RECORDS, { first: 100, after, filter }, { requestPolicy: 'network-only' }).toPromise()
      if (error || !data?.usage) {
        setBusy(false)
        return setFailure(toFailure(error ?? {}))
      }
      records.push(...data.usage.edges.map(({ node }) => node))
      after = data.usage.pageInfo.endCursor
      hasMore = data.usage.pageInfo.hasNextPage
    }
    // The mark tells Excel that the file is UTF-8.
    const url = URL.createObjectURL(new Blob(['\ufeff', toCsv(records)], { type: 'text/csv;charset=utf-8' }))
    Object.assign(document.createElement('a'), { href: url, download: 'usage.csv' }).click()
    setTimeout(() => URL.revokeObjectURL(url))
    setBusy(false)
    if (hasMore) toast(text('usage.exportCut', { count: number(MAX_ROWS) }))
  }
  return (
    <>
      <Button icon={Download} isBusy={isBusy} onClick={save}>
        {text('usage.export')}
      </Button>
      <FailureNotice failure={failure} />
    </>
  )
}
