import { getRouteApi } from '@tanstack/react-router'
import { Ban, History, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useCalm, useRepeat } from '../../../data/calm.ts'
import { useAction, useEvents, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../../parts/data-table.tsx'
import { Digits } from '../../../parts/digits.tsx'
import { FactList } from '../../../parts/fact-list.tsx'
import { Money } from '../../../parts/money.tsx'
import { EmptyState, FailureNotice, NotFound, WhenReady } from '../../../parts/states.tsx'
import { DateTime } from '../../../parts/time.tsx'
import { Code, harmless } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { ConfirmDialog, Sheet } from '../../../ui/dialog.tsx'
import { Select } from '../../../ui/input.tsx'
import { toast } from '../../../ui/toast.tsx'
import { RUN_STATUSES } from '../base/search.ts'
import { readMessages } from './messages.ts'
import { RunStatusBadge } from './run-status.tsx'
import { LiveRun, Result } from './run-view.tsx'
import { CANCEL, DELETE_RUN, RUN, RUN_ENDED, RUNS, type Run, type RunRow } from './runs.ts'

/** Between two questions, while many runs end. */
const PAUSE_MS = 1_500
/** No event says that a run has begun: one from elsewhere shows after this time at the latest. */
const POLL_INTERVAL_MS = 15_000

const route = getRouteApi('/agents/$id')

/** The runs of an agent, newest first. */
export function Runs({ agentId }: { readonly agentId: string }) {
  const text = useText()
  const { status, run } = route.useSearch()
  const navigate = route.useNavigate()
  const openRun = (run: string | undefined) => void navigate({ search: (now) => ({ ...now, run }), resetScroll: false })
  const columns = useColumns((id) => openRun(id))
  const paging = usePaging(status)
  const result = useQueryResult(
    RUNS,
    { id: agentId, ...paging.variables, filter: status ? { status } : null },
    { types: ['AgentRun', 'DeleteAgentRunPayload'] },
  )
  const refresh = result.state === 'ready' ? result.refresh : null
  const refreshSoon = useCalm(() => refresh?.(), PAUSE_MS)
  useEvents(RUN_ENDED, {}, ({ runEnded }) => runEnded.agentRun?.agentId === agentId && refreshSoon())
  useRepeat(result, POLL_INTERVAL_MS)
  return (
    <>
      <div className="mb-3 flex justify-end">
        <Select
          aria-label={text('agents.status')}
          className="w-auto"
          value={status ?? ''}
          onChange={(value) =>
            void navigate({ search: (now) => ({ ...now, status: value || undefined }), replace: true, resetScroll: false })
          }
          options={[
            { value: '', label: text('agents.everyStatus') },
            ...RUN_STATUSES.map((value) => ({ value, label: text(`agents.status.${value}`) })),
          ]}
        />
      </div>
      <DataTable
        label={text('agents.tab.runs')}
        result={result}
        page={({ agent }) => agent?.runs ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={History} title={text(status ? 'common.nothingMatches' : 'agents.noRuns')}>
            {status ? null : text('agents.noRunsHelp')}
          </EmptyState>
        }
      />
      <Sheet isOpen={run !== undefined} onClose={() => openRun(undefined)} title={text('agents.run')} size="large">
        {run && (
          <RunDetails
            key={run}
            agentId={agentId}
            runId={run}
            onDeleted={() => {
              openRun(undefined)
              refresh?.()
            }}
          />
        )}
      </Sheet>
    </>
  )
}

interface RunDetailsProps {
  readonly agentId: string
  readonly runId: string
  readonly onDeleted: () => void
}

function RunDetails({ agentId, runId, onDeleted }: RunDetailsProps) {
  const result = useQueryResult(RUN, { id: runId })
  return (
    <WhenReady result={result}>
      {({ agentRun }) =>
        agentRun && agentRun.agentId === agentId ? (
          <Details run={agentRun} refresh={() => result.state === 'ready' && result.refresh()} onDeleted={onDeleted} />
        ) : (
          <NotFound />
        )
      }
    </WhenReady>
  )
}

function Details({ run, refresh, onDeleted }: { readonly run: Run; readonly refresh: () => void; readonly onDeleted: () => void }) {
  const text = useText()
  const { number } = useFormats()
  const [isDeleting, setDeleting] = useState(false)
  const cancel = useAction(CANCEL)
  const remove = useAction(DELETE_RUN)
  const { id, status, agentVersion, messages, startedAt, endedAt, cost } = run
  const isRunning = status === 'RUNNING'
  return (
    <div className="flex flex-col gap-6">
      <FactList
        facts={[
          [text('agents.status'), <RunStatusBadge key="status" status={status} />],
          [text('agents.id'), <Code key="id">{id}</Code>],
          [text('agents.version'), number(agentVersion)],
          [text('agents.startedAt'), <DateTime key="started" at={startedAt} />],
          [text('agents.duration'), endedAt && <Duration key="duration" run={run} />],
          [text('agents.cost'), cost !== null && <Money key="cost" amount={cost} />],
        ]}
      />
      <div className="flex flex-wrap gap-2">
        {isRunning ? (
          <Button icon={Ban} isBusy={cancel.isRunning} onClick={() => void cancel.run({ id })}>
            {text('agents.cancelRun')}
          </Button>
        ) : (
          <Button icon={Trash2} onClick={() => setDeleting(true)}>
            {text('agents.deleteRun')}
          </Button>
        )}
      </div>
      <FailureNotice failure={cancel.failure} />
      <section>
        <h3 className="mb-2 text-sm text-muted">{text('agents.input')}</h3>
        <div className="flex flex-col gap-2">
          {readMessages(messages).map(({ text }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: messages keep their places.
            <p key={index} dir="auto" className="rounded-lg border bg-sunken px-3 py-2 wrap-anywhere whitespace-pre-wrap">
              {harmless(text)}
            </p>
          ))}
        </div>
      </section>
      <section>
        <h3 className="mb-2 text-sm text-muted">{text('agents.answer')}</h3>
        {isRunning ? <LiveRun runId={id} onDone={refresh} /> : <Result run={run} isReceiptOpen />}
      </section>
      <ConfirmDialog
        isOpen={isDeleting}
        onClose={() => {
          remove.reset()
          setDeleting(false)
        }}
        title={text('agents.deleteRunTitle')}
        description={text('agents.deleteRunHelp')}
        action={text('agents.deleteRun')}
        isDangerous
        onConfirm={async () => {
          if (!(await remove.run({ id }))) return false
          toast(text('agents.runDeleted'))
          onDeleted()
          return true
        }}
      >
        <FailureNotice failure={remove.failure} />
      </ConfirmDialog>
    </div>
  )
}

function Duration({ run: { startedAt, endedAt } }: { readonly run: Pick<Run, 'startedAt' | 'endedAt'> }) {
  if (!endedAt) return <span aria-hidden>—</span>
  const seconds = (Date.parse(endedAt) - Date.parse(startedAt)) / 1000
  return <Digits value={seconds} style="unit" unit="second" unitDisplay="short" maximumFractionDigits={1} />
}

function useColumns(open: (id: string) => void): readonly Column<RunRow>[] {
  const text = useText()
  return [
    {
      id: 'started',
      header: text('agents.startedAt'),
      cell: ({ id, startedAt }) => (
        <button type="button" onClick={() => open(id)} className="text-start font-medium underline-offset-4 hover:underline">
          <DateTime at={startedAt} />
        </button>
      ),
    },
    { id: 'status', header: text('agents.status'), cell: ({ status }) => <RunStatusBadge status={status} /> },
    {
      id: 'version',
      header: text('agents.version'),
      cell: ({ agentVersion }) => <Digits value={agentVersion} />,
      isNumber: true,
      shown: 'wide',
    },
    { id: 'duration', header: text('agents.duration'), cell: (run) => <Duration run={run} />, isNumber: true, shown: 'wide' },
    { id: 'cost', header: text('agents.cost'), cell: ({ cost }) => <Money amount={cost} />, isNumber: true },
  ]
}
