import { Link } from '@tanstack/react-router'
import { Plus, Workflow } from 'lucide-react'
import { useState } from 'react'
import { useEvents, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { CreateDialog } from './create-dialog.tsx'
import { RUN_ENDED } from './runs.ts'
import { RunBadge } from './states.tsx'
import { WORKFLOWS, type WorkflowRow } from './workflows.ts'

export function WorkflowsPage() {
  const text = useText()
  const [isCreating, setCreating] = useState(false)
  const columns = useColumns()
  const paging = usePaging()
  const result = useQueryResult(WORKFLOWS, paging.variables, { types: ['Workflow'] })
  useEvents(RUN_ENDED, {}, ({ runEnded }) => runEnded.workflowRun && result.state === 'ready' && result.refresh())
  const create = (
    <Button variant="primary" icon={Plus} onClick={() => setCreating(true)}>
      {text('workflows.create')}
    </Button>
  )
  return (
    <>
      <PageHeader title={text('workflows.title')} lead={text('workflows.lead')} actions={create} />
      <DataTable
        label={text('workflows.title')}
        result={result}
        page={({ workflows }) => workflows ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={Workflow} title={text('workflows.none')}>
            {text('workflows.noneHelp')}
          </EmptyState>
        }
      />
      <CreateDialog isOpen={isCreating} onClose={() => setCreating(false)} />
    </>
  )
}

function useColumns(): readonly Column<WorkflowRow>[] {
  const text = useText()
  return [
    {
      id: 'name',
      header: text('workflows.name'),
      cell: ({ id, name, code }) => (
        <>
          <Link to="/workflows/$id" params={{ id }} className="font-medium underline-offset-4 hover:underline">
            <UserText className="max-w-40 sm:max-w-80">{name}</UserText>
          </Link>
          <div className="text-xs text-muted">
            <Code className="max-w-40 font-sans sm:max-w-80">{code}</Code>
          </div>
        </>
      ),
    },
    {
      id: 'last',
      header: text('workflows.lastRun'),
      cell: ({ id, runs }) => {
        const run = runs.edges[0]?.node
        if (!run) return <span className="text-muted">{text('workflows.neverRun')}</span>
        return (
          <Link
            to="/workflows/$id/runs/$runId"
            params={{ id, runId: run.id }}
            className="inline-flex flex-wrap items-center gap-x-2 gap-y-1 underline-offset-4 hover:underline"
          >
            <RunBadge status={run.status} />
            <span className="text-xs text-muted">
              <RelativeTime at={run.startedAt} />
            </span>
          </Link>
        )
      },
    },
    { id: 'version', header: text('workflows.version'), cell: ({ version }) => <Digits value={version} />, isNumber: true, shown: 'wide' },
    { id: 'updated', header: text('workflows.updated'), cell: ({ updatedAt }) => <RelativeTime at={updatedAt} />, shown: 'wide' },
  ]
}
