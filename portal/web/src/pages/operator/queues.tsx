import { Link } from '@tanstack/react-router'
import { CircleCheck } from 'lucide-react'
import type { ReactNode } from 'react'
import { useState } from 'react'
import { useRepeat } from '../../data/calm.ts'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, RowsTable } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { EmptyState, WhenReady } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Pagination } from '../../ui/pagination.tsx'
import { Card } from '../../ui/surface.tsx'
import { QUEUES, type Queue } from './operator.ts'

/** Events are of one organization; no stream has those of all. */
const POLL_INTERVAL_MS = 10_000

/** What waits to be read, by organization. */
export function Queues() {
  const text = useText()
  const [cursors, setCursors] = useState<readonly string[]>([])
  const result = useQueryResult(QUEUES, { after: cursors.at(-1) ?? null }, { types: ['Document'] })
  useRepeat(result, POLL_INTERVAL_MS)
  const columns = useColumns()
  return (
    <WhenReady result={result}>
      {({ ingestionQueues: { queues, next } }) => {
        const sum = (state: 'due' | 'underWay') => queues.reduce((total, queue) => total + queue[state], 0)
        const oldest = queues.reduce<string | null>(
          (first, { dueSince }) => (dueSince && (!first || dueSince < first) ? dueSince : first),
          null,
        )
        const isWhole = next === null && cursors.length === 0
        return (
          <>
            <dl className="mb-6 grid gap-3 sm:grid-cols-3">
              <Figure name={text('operator.due')} value={<Digits value={sum('due')} />} help={text('operator.dueHelp')} />
              <Figure name={text('operator.underWay')} value={<Digits value={sum('underWay')} />} help={text('operator.underWayHelp')} />
              <Figure
                name={text('operator.oldest')}
                value={oldest ? <RelativeTime at={oldest} /> : '—'}
                help={text('operator.oldestHelp')}
              />
            </dl>
            {!isWhole && <p className="mb-3 text-sm text-muted">{text('operator.partOfQueue')}</p>}
            {queues.length === 0 && isWhole ? (
              <EmptyState icon={CircleCheck} title={text('operator.queueEmpty')}>
                {text('operator.queueEmptyHelp')}
              </EmptyState>
            ) : (
              <>
                <RowsTable
                  label={text('operator.tab.queue')}
                  columns={columns}
                  rows={queues}
                  rowId={({ organization }) => organization.id}
                />
                <Pagination
                  isBusy={result.state === 'ready' && result.isRefreshing}
                  onNewer={cursors.length > 0 ? () => setCursors(cursors.slice(0, -1)) : null}
                  onOlder={next ? () => setCursors([...cursors, next]) : null}
                />
              </>
            )}
          </>
        )
      }}
    </WhenReady>
  )
}

function Figure({ name, value, help }: { readonly name: string; readonly value: ReactNode; readonly help: string }) {
  return (
    <Card as="div">
      <dt className="text-sm text-muted">{name}</dt>
      <dd className="mt-1 text-2xl font-semibold">{value}</dd>
      <dd className="mt-1 text-xs text-muted">{help}</dd>
    </Card>
  )
}

function useColumns(): readonly Column<Queue>[] {
  const text = useText()
  return [
    {
      id: 'organization',
      header: text('operator.organization'),
      cell: ({ organization: { id, name } }) => (
        <Link to="/operator/organizations/$id" params={{ id }} className="font-medium underline-offset-4 hover:underline">
          <UserText className="max-w-32 sm:max-w-72">{name}</UserText>
        </Link>
      ),
    },
    { id: 'due', header: text('operator.due'), cell: ({ due }) => <Digits value={due} />, isNumber: true },
    { id: 'underWay', header: text('operator.underWay'), cell: ({ underWay }) => <Digits value={underWay} />, isNumber: true },
    { id: 'oldest', header: text('operator.oldest'), cell: ({ dueSince }) => <RelativeTime at={dueSince} />, shown: 'wide' },
  ]
}
