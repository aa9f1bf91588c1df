import { getRouteApi } from '@tanstack/react-router'
import { Inbox, RotateCw } from 'lucide-react'
import { useState } from 'react'
import { useRepeat } from '../../data/calm.ts'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { StatusBadge } from '../../parts/badges.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { ServiceText } from '../../parts/service-text.tsx'
import { Source } from '../../parts/source.tsx'
import { EmptyState, FailureNotice } from '../../parts/states.tsx'
import { DateTime, RelativeTime } from '../../parts/time.tsx'
import { Code } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Sheet } from '../../ui/dialog.tsx'
import { Select } from '../../ui/input.tsx'
import { Badge } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { STATUSES } from './filters.ts'
import { DELIVERIES, type Delivery, REDELIVER } from './webhooks.ts'

const route = getRouteApi('/webhooks/$id')

/** No event tells how a delivery goes on: events about it would be delivered, too. */
const POLL_INTERVAL_MS = 2_000
/** After an attempt that failed, the next one comes much later. */
const SLOW_POLL_INTERVAL_MS = 15_000

const BADGES = {
  PENDING: { tone: 'info', label: 'webhooks.status.PENDING', isActive: true },
  DELIVERED: { tone: 'success', label: 'webhooks.status.DELIVERED' },
  FAILED: { tone: 'danger', label: 'webhooks.status.FAILED' },
} as const

/** What was sent to an endpoint, newest first. */
export function Deliveries({ endpointId }: { readonly endpointId: string }) {
  const text = useText()
  const { status } = route.useSearch()
  const navigate = route.useNavigate()
  const [openId, setOpenId] = useState<string | null>(null)
  const columns = useColumns(setOpenId)
  const paging = usePaging(status)
  const result = useQueryResult(DELIVERIES, { endpointId, status: status ?? null, ...paging.variables }, { types: ['WebhookDelivery'] })
  const edges = result.state === 'ready' ? (result.data.webhookDeliveries?.edges ?? []) : []
  const pending = edges.filter(({ node }) => node.status === 'PENDING')
  const isSoon = pending.some(({ node }) => node.attempts.length === 0)
  useRepeat(result, isSoon ? POLL_INTERVAL_MS : SLOW_POLL_INTERVAL_MS, pending.length > 0)
  const open = edges.find(({ node }) => node.id === openId)?.node ?? null
  return (
    <section>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-lg">{text('webhooks.deliveries')}</h2>
        <div className="flex gap-2">
          <Select
            aria-label={text('webhooks.status')}
            value={status ?? ''}
            onChange={(value) => void navigate({ search: { status: value || undefined }, replace: true, resetScroll: false })}
            options={[
              { value: '', label: text('common.all') },
              ...STATUSES.map((value) => ({ value, label: text(`webhooks.status.${value}`) })),
            ]}
          />
          <Button icon={RotateCw} onClick={() => result.state === 'ready' && result.refresh()}>
            {text('webhooks.refresh')}
          </Button>
        </div>
      </div>
      <DataTable
        label={text('webhooks.deliveries')}
        result={result}
        page={({ webhookDeliveries }) => webhookDeliveries ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={Inbox} title={text(status ? 'common.nothingMatches' : 'webhooks.noDeliveries')}>
            {status ? null : text('webhooks.noDeliveriesHelp')}
          </EmptyState>
        }
      />
      <Sheet isOpen={open !== null} onClose={() => setOpenId(null)} title={text('webhooks.delivery')} size="large">
        {open && <Details endpointId={endpointId} delivery={open} />}
      </Sheet>
    </section>
  )
}

function Details({ endpointId, delivery }: { readonly endpointId: string; readonly delivery: Delivery }) {
  const text = useText()
  const { number } = useFormats()
  const redeliver = useAction(REDELIVER)
  const { id, status, event, attempts } = delivery
  const payload = JSON.stringify(event.data, null, 2)
  const sendAgain = async () => {
    if (await redeliver.run({ input: { endpointId, id } })) toast(text('webhooks.sentAgain'))
  }
  return (
    <div className="flex flex-col gap-6">
      <FactList
        facts={[
          [text('webhooks.status'), <StatusBadge key="status" {...BADGES[status]} />],
          [text('webhooks.eventType'), <Code key="type">{event.type}</Code>],
          [text('webhooks.subject'), <Code key="subject">{event.subject}</Code>],
          [text('webhooks.eventId'), <Code key="event">{event.id}</Code>],
          [text('webhooks.at'), <DateTime key="at" at={event.at} />],
        ]}
      />
      <FailureNotice failure={redeliver.failure} />
      <div>
        <Button icon={RotateCw} isBusy={redeliver.isRunning} disabled={status === 'PENDING'} onClick={sendAgain}>
          {text('webhooks.redeliver')}
        </Button>
      </div>
      <section>
        <div className="mb-2 flex items-center justify-between">
          <h3 className="text-sm">{text('webhooks.payload')}</h3>
          <CopyButton value={payload} label={text('webhooks.copyPayload')} />
        </div>
        <Source label={text('webhooks.payload')} source={payload} />
      </section>
      <section>
        <h3 className="mb-2 text-sm">{text('webhooks.attempts', { count: attempts.length, shown: number(attempts.length) })}</h3>
        <ol className="flex flex-col gap-3">
          {attempts.toReversed().map(({ at, statusCode, durationMs, error, responseStart }) => (
            <li key={at} className="rounded-lg border p-3 text-sm">
              <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
                {statusCode !== null && <Badge tone={error === null ? 'success' : 'danger'}>{statusCode}</Badge>}
                <DateTime at={at} />
                <span className="text-muted">
                  <Digits value={durationMs} style="unit" unit="millisecond" />
                </span>
              </div>
              {error && (
                <p className="mt-2 text-danger-text">
                  {text(statusCode === null ? 'webhooks.noAnswer' : 'webhooks.refused')}
                  <span className="block">
                    <ServiceText>{error}</ServiceText>
                  </span>
                </p>
              )}
              {responseStart && (
                <div className="mt-2">
                  <Source label={text('webhooks.response')} source={responseStart} />
                </div>
              )}
            </li>
          ))}
        </ol>
      </section>
    </div>
  )
}

function useColumns(open: (id: string) => void): readonly Column<Delivery>[] {
  const text = useText()
  return [
    {
      id: 'event',
      header: text('webhooks.eventType'),
      cell: ({ id, event }) => (
        <button type="button" onClick={() => open(id)} className="text-start font-medium underline-offset-4 hover:underline">
          <Code className="max-w-44 font-sans sm:max-w-72">{event.type}</Code>
        </button>
      ),
    },
    { id: 'status', header: text('webhooks.status'), cell: ({ status }) => <StatusBadge {...BADGES[status]} /> },
    {
      id: 'attempts',
      header: text('webhooks.attemptsHeader'),
      cell: ({ attempts }) => <Digits value={attempts.length} />,
      isNumber: true,
      shown: 'wide',
    },
    { id: 'at', header: text('webhooks.at'), cell: ({ event }) => <RelativeTime at={event.at} />, shown: 'wide' },
  ]
}
