import { Link } from '@tanstack/react-router'
import { History } from 'lucide-react'
import { useCalm, useRepeat } from '../../data/calm.ts'
import { useEvents, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { Money } from '../../parts/money.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Select } from '../../ui/input.tsx'
import { STATUSES } from './filters.ts'
import { RUN_ENDED, RUNS, type RunRow, type RunStatus } from './runs.ts'
import { Duration, RunBadge } from './states.tsx'

/** Between two questions, while many runs end. */
const PAUSE_MS = 1_500
/** No event says that a run has begun: one from elsewhere shows after this time at the latest. */
const POLL_INTERVAL_MS = 15_000

interface RunsProps {
  readonly workflowId: string
  readonly status: RunStatus | undefined
  readonly onStatus: (status: RunStatus | undefined) => void
}

/** The runs of a workflow, newest first. */
export function Runs({ workflowId, status, onStatus }: RunsProps) {
  const text = useText()
  const columns = useColumns(workflowId)
  const paging = usePaging(status)
  const filter = status ? { status } : null
  const result = useQueryResult(RUNS, { id: workflowId, filter, ...paging.variables }, { types: ['WorkflowRun'] })
  const refreshSoon = useCalm(() => result.state === 'ready' && result.refresh(), PAUSE_MS)
  useEvents(RUN_ENDED, {}, ({ runEnded }) => runEnded.workflowRun?.workflowId === workflowId && refreshSoon())
  useRepeat(result, POLL_INTERVAL_MS)
  return (
    <>
      <search className="mb-4 flex">
        <Select
          aria-label={text('workflows.status')}
          className="max-w-56"
          value={status ?? ''}
          onChange={(value) => onStatus(value || undefined)}
          options={[
            { value: '', label: text('workflows.allStatuses') },
            ...STATUSES.map((value) => ({ value, label: text(`workflows.status.${value}`) })),
          ]}
        />
      </search>
      <DataTable
        label={text('workflows.tab.runs')}
        result={result}
        page={({ workflow }) => workflow?.runs ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={History} title={text(status ? 'common.nothingMatches' : 'workflows.noRuns')}>
            {status ? null : text('workflows.noRunsHelp')}
          </EmptyState>
        }
      />
    </>
  )
}

function useColumns(id: string): readonly Column<RunRow>[] {
  const text = useText()
  return [
    {
      id: 'started',
      header: text('workflows.started'),
      cell: ({ id: runId, startedAt }) => (
        <Link to="/workflows/$id/runs/$runId" params={{ id, runId }} className="font-medium underline-offset-4 hover:underline">
          <DateTime at={startedAt} />
        </Link>
      ),
    },
    { id: 'status', header: text('workflows.status'), cell: ({ status }) => <RunBadge status={status} /> },
    {
      id: 'version',
      header: text('workflows.version'),
      cell: ({ workflowVersion }) => <Digits value={workflowVersion} />,
      isNumber: true,
      shown: 'wide',
    },
    {
      id: 'duration',
      header: text('workflows.duration'),
      cell: ({ startedAt, endedAt, status }) => <Duration from={startedAt} to={endedAt} isOver={status !== 'RUNNING'} />,
      isNumber: true,
      shown: 'wide',
    },
    { id: 'cost', header: text('workflows.cost'), cell: ({ cost }) => <Money amount={cost} />, isNumber: true },
  ]
}
