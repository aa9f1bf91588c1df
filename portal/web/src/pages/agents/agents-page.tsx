import { Link } from '@tanstack/react-router'
import { Bot, Plus } from 'lucide-react'
import { useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { ResidencyBadge } from '../../parts/badges.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { AGENTS, type AgentRow } from './base/agents.ts'
import { useCollectionNames } from './base/collection-names.ts'
import { RunStatusBadge } from './runs/run-status.tsx'

export function AgentsPage() {
  const text = useText()
  const columns = useColumns()
  const paging = usePaging()
  const result = useQueryResult(AGENTS, paging.variables, { types: ['Agent', 'DeleteAgentPayload'] })
  const create = (
    <Button asChild variant="primary">
      <Link to="/agents/new">
        <Plus className="size-4" aria-hidden />
        {text('agents.create')}
      </Link>
    </Button>
  )
  return (
    <>
      <PageHeader title={text('agents.title')} lead={text('agents.lead')} actions={create} />
      <DataTable
        label={text('agents.title')}
        result={result}
        page={({ agents }) => agents ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={Bot} title={text('agents.none')}>
            {text('agents.noneHelp')}
          </EmptyState>
        }
      />
    </>
  )
}

function useColumns(): readonly Column<AgentRow>[] {
  const text = useText()
  const { list, number } = useFormats()
  const names = useCollectionNames()
  return [
    {
      id: 'name',
      header: text('agents.name'),
      cell: ({ id, name, code }) => (
        <>
          <Link to="/agents/$id" params={{ id }} className="font-medium underline-offset-4 hover:underline">
            <UserText className="max-w-48 sm:max-w-72">{name}</UserText>
          </Link>
          <div className="text-xs text-muted">
            <Code className="max-w-48">{code}</Code>
          </div>
        </>
      ),
    },
    {
      id: 'model',
      header: text('agents.model'),
      cell: ({ model }) =>
        model ? (
          <span className="flex flex-wrap items-center gap-2">
            <Code className="max-w-36 font-sans sm:max-w-56">{model.id}</Code>
            <ResidencyBadge residency={model.residency} />
          </span>
        ) : (
          <span className="text-warning-text">{text('agents.modelGone')}</span>
        ),
    },
    {
      id: 'collections',
      header: text('agents.collections'),
      cell: ({ collections }) => {
        const known = collections.flatMap((collection) => names.get(collection?.id ?? '') ?? [])
        if (collections.length === 0) return <span className="text-muted">{text('common.none')}</span>
        return (
          <UserText className="max-w-56">
            {known.length === collections.length
              ? list(known)
              : text('agents.collectionCount', { count: collections.length, shown: number(collections.length) })}
          </UserText>
        )
      },
      shown: 'wide',
    },
    {
      id: 'run',
      header: text('agents.lastRun'),
      cell: ({ runs }) => {
        const run = runs.edges[0]?.node
        if (!run) return <span className="text-muted">{text('agents.neverRun')}</span>
        return (
          <span className="flex flex-wrap items-center gap-2">
            <RunStatusBadge status={run.status} />
            <span className="text-muted">
              <RelativeTime at={run.startedAt} />
            </span>
          </span>
        )
      },
      shown: 'wide',
    },
  ]
}
