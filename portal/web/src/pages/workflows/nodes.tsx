import { Suspense } from 'react'
import { failureOfWork } from '../../data/failure.ts'
import { lazyPart } from '../../data/lazy-part.ts'
import { Text, useFormats, useText } from '../../i18n/text.tsx'
import { type Column, RowsTable } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { FailureText } from '../../parts/failure-text.tsx'
import { Money } from '../../parts/money.tsx'
import { Source } from '../../parts/source.tsx'
import { NotFound } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code } from '../../parts/user-text.tsx'
import { Sheet } from '../../ui/dialog.tsx'
import { Notice, Skeleton } from '../../ui/surface.tsx'
import { type Definition, type DefinitionNode, writeJson } from './rules/definition.ts'
import { listEdges } from './rules/graph.ts'
import type { ShownNode } from './rules/progress.ts'
import { Duration, NodeBadge, TYPE_ICONS } from './states.tsx'

const GraphView = lazyPart(() => import('./graph-view.tsx'), 'GraphView')

interface NodesProps {
  /** Null: the version of the run is not stored. */
  readonly definition: Definition | null
  /** The nodes with their states in a run. */
  readonly run?: readonly ShownNode[]
  readonly open: string | undefined
  readonly onOpen: (node: string | undefined) => void
}

/** The nodes of a workflow, drawn and as a list with the same content. */
export function Nodes({ definition, run, open, onOpen }: NodesProps) {
  const text = useText()
  return (
    <div className="flex flex-col gap-6">
      {definition ? (
        <Suspense fallback={<Skeleton className="h-80 rounded-xl" />}>
          <GraphView definition={definition} run={run} open={open} onOpen={onOpen} />
        </Suspense>
      ) : (
        <Notice>{text('workflows.versionGone')}</Notice>
      )}
      <NodeList definition={definition} run={run} onOpen={onOpen} />
      <NodeSheet definition={definition} run={run} open={open} onOpen={onOpen} />
    </div>
  )
}

interface Row {
  readonly id: string
  readonly node: DefinitionNode | undefined
  readonly waits: readonly string[]
  readonly state: ShownNode | undefined
}

function NodeList({ definition, run, onOpen }: Omit<NodesProps, 'open'>) {
  const text = useText()
  const edges = definition ? listEdges(definition) : []
  const ids = definition ? definition.nodes.map(({ id }) => id) : (run ?? []).map(({ nodeId }) => nodeId)
  const rows = ids.map((id): Row => {
    const waits = edges.filter(({ to }) => to === id).map(({ from, chosen }) => (chosen === null ? from : `${from}.${chosen}`))
    return {
      id,
      waits,
      node: definition?.nodes.find((node) => node.id === id),
      state: run?.find(({ nodeId }) => nodeId === id),
    }
  })
  const columns: Column<Row>[] = [
    {
      id: 'id',
      header: text('workflows.node'),
      cell: ({ id, node }) => (
        <>
          <button type="button" onClick={() => onOpen(id)} className="min-h-6 text-start font-medium underline-offset-4 hover:underline">
            <Code className="max-w-40 font-sans sm:max-w-64">{id}</Code>
          </button>
          {node && (
            <div className="text-xs text-muted md:hidden">
              <TypeName node={node} />
            </div>
          )}
        </>
      ),
    },
    { id: 'type', header: text('workflows.type'), cell: ({ node }) => node && <TypeName node={node} />, shown: 'wide' },
    {
      id: 'waits',
      header: text('workflows.waitsFor'),
      cell: ({ waits }) =>
        waits.length === 0 ? (
          <span className="text-muted">{text('workflows.waitsForNothing')}</span>
        ) : (
          <span className="flex flex-wrap gap-x-2">
            {waits.map((wait) => (
              <Code key={wait}>{wait}</Code>
            ))}
          </span>
        ),
      shown: run ? 'wide' : 'always',
    },
  ]
  if (run) {
    columns.push(
      { id: 'state', header: text('workflows.state'), cell: ({ state }) => state && <NodeState node={state} /> },
      {
        id: 'duration',
        header: text('workflows.duration'),
        cell: ({ state }) => state && <Duration from={state.startedAt} to={state.endedAt} isOver={state.state !== 'RUNNING'} />,
        isNumber: true,
        shown: 'wide',
      },
      { id: 'cost', header: text('workflows.cost'), cell: ({ state }) => <Money amount={state?.cost} />, isNumber: true },
    )
  }
  return <RowsTable label={text('workflows.nodes')} columns={columns} rows={rows} rowId={({ id }) => id} />
}

function NodeState({ node: { state, itemsDone } }: { readonly node: ShownNode }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <span className="inline-flex flex-wrap items-center gap-2">
      <NodeBadge state={state} />
      {state === 'RUNNING' && itemsDone > 0 && (
        <span className="text-xs text-muted">{text('workflows.itemsDone', { count: itemsDone, shown: number(itemsDone) })}</span>
      )}
    </span>
  )
}

function TypeName({ node: { type } }: { readonly node: DefinitionNode }) {
  const text = useText()
  const Icon = TYPE_ICONS[type]
  return (
    <span className="inline-flex items-center gap-1.5">
      <Icon className="size-3.5 text-muted" aria-hidden />
      {text(`workflows.type.${type}`)}
    </span>
  )
}

/** All facts of one node: its definition, and its work in the run. */
function NodeSheet({ definition, run, open, onOpen }: NodesProps) {
  const text = useText()
  const node = definition?.nodes.find(({ id }) => id === open)
  const state = run?.find(({ nodeId }) => nodeId === open)
  return (
    <Sheet
      isOpen={open !== undefined}
      onClose={() => onOpen(undefined)}
      title={open && <Text id="workflows.nodeTitle" values={{ id: <Code className="font-sans">{open}</Code> }} />}
      size="large"
    >
      {open !== undefined && !node && !state && <NotFound />}
      {(node || state) && (
        <div className="flex flex-col gap-6">
          <FactList
            facts={[
              [text('workflows.type'), node && <TypeName key="type" node={node} />],
              [text('workflows.state'), state && <NodeState key="state" node={state} />],
              [text('workflows.started'), state?.startedAt && <DateTime key="started" at={state.startedAt} />],
              [
                text('workflows.duration'),
                state?.startedAt && (
                  <Duration key="duration" from={state.startedAt} to={state.endedAt} isOver={state.state !== 'RUNNING'} />
                ),
              ],
              [text('workflows.cost'), state && <Money key="cost" amount={state.cost} />],
              [text('workflows.itemsDoneLabel'), state && state.itemsDone > 0 && <Digits key="items" value={state.itemsDone} />],
            ]}
          />
          {state?.error && (
            <Notice tone="danger">
              <FailureText failure={failureOfWork(state.error)} />
            </Notice>
          )}
          {state?.state === 'DONE' && (
            <section>
              <h3 className="mb-2 text-sm">{text('workflows.output')}</h3>
              <Source label={text('workflows.output')} source={writeJson(state.output)} />
            </section>
          )}
          {node && (
            <section>
              <h3 className="mb-2 text-sm">{text('workflows.definition')}</h3>
              <Source label={text('workflows.definition')} source={writeJson(node)} />
            </section>
          )}
        </div>
      )}
    </Sheet>
  )
}
