import { getRouteApi, Link } from '@tanstack/react-router'
import { CircleStop, ReceiptText, RotateCw, Trash2 } from 'lucide-react'
import { type ReactNode, useEffect, useReducer, useRef, useState } from 'react'
import { useScope } from '../../app/session.tsx'
import { failureOfWork } from '../../data/failure.ts'
import { useFollow } from '../../data/follow.ts'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { Text, useText } from '../../i18n/text.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { FailureText } from '../../parts/failure-text.tsx'
import { Money } from '../../parts/money.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { Source } from '../../parts/source.tsx'
import { FailureNotice, NotFound, WhenReady } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Notice, Skeleton } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { Nodes } from './nodes.tsx'
import { type Definition, writeJson } from './rules/definition.ts'
import { advance, apply, NO_PROGRESS } from './rules/progress.ts'
import { CANCEL, DELETE_RUN, FOLLOW, RUN, type Run } from './runs.ts'
import { Duration, RunBadge } from './states.tsx'
import { VERSION } from './workflows.ts'

const route = getRouteApi('/workflows/$id/runs/$runId')

/** The outputs of nodes are not in the events. They are asked for this long after the last that ended. */
const REFRESH_DELAY_MS = 400

export function RunPage() {
  const text = useText()
  const { id, runId } = route.useParams()
  const result = useQueryResult(RUN, { id: runId })
  const run = result.state === 'ready' ? result.data.workflowRun : null
  if (result.state !== 'ready' || run?.workflowId !== id) {
    return (
      <>
        <PageHeader title={text('workflows.run')} back={<Back id={id} name={null} />} />
        <WhenReady result={result}>{() => <NotFound />}</WhenReady>
      </>
    )
  }
  return <Followed key={runId} run={run} refresh={result.refresh} />
}

function Back({ id, name }: { readonly id: string; readonly name: string | null }) {
  const text = useText()
  return (
    <nav aria-label={text('workflows.path')} className="flex flex-wrap items-center gap-x-2">
      <Link to="/workflows">{text('workflows.title')}</Link>
      {name !== null && (
        <>
          <span aria-hidden>/</span>
          <Link to="/workflows/$id" params={{ id }} search={{ tab: 'runs' }}>
            <UserText className="max-w-72">{name}</UserText>
          </Link>
        </>
      )}
    </nav>
  )
}

/** A run with its events. */
function Followed({ run: loaded, refresh }: { readonly run: Run; readonly refresh: () => void }) {
  const text = useText()
  const { node } = route.useSearch()
  const navigate = route.useNavigate()
  const [progress, dispatch] = useReducer(advance, NO_PROGRESS)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const failure = useFollow(FOLLOW, loaded.status === 'RUNNING' ? loaded.id : null, ({ workflowRunEvents: event }) => {
    dispatch(event)
    if (event.type === 'NODE_ENDED' || event.type === 'DONE') {
      clearTimeout(timer.current)
      timer.current = setTimeout(refresh, event.type === 'DONE' ? 0 : REFRESH_DELAY_MS)
    }
    return event.cursor
  })
  const run = apply(loaded, progress)
  const { id, status, workflow, workflowId, workflowVersion, inputs, output, cost, startedAt, deadline, endedAt, nodes } = run
  return (
    <>
      <PageHeader
        title={text('workflows.run')}
        heading={
          <span className="inline-flex flex-wrap items-center gap-3">
            {text('workflows.run')}
            <span role="status">
              <RunBadge status={status} />
            </span>
          </span>
        }
        back={<Back id={workflowId} name={workflow?.name ?? null} />}
        actions={<Actions run={run} />}
      />
      <div className="flex flex-col gap-8">
        <FailureNotice failure={failure} />
        {run.error && <RunError error={run.error} />}
        <FactList
          facts={[
            [
              text('workflows.runId'),
              <span key="id" className="flex items-center gap-1">
                <Code>{id}</Code>
                <CopyButton value={id} label={text('workflows.copyRunId')} />
              </span>,
            ],
            [text('workflows.version'), <Digits key="version" value={workflowVersion} />],
            [text('workflows.started'), <DateTime key="started" at={startedAt} />],
            [text('workflows.duration'), <Duration key="duration" from={startedAt} to={endedAt} isOver={status !== 'RUNNING'} />],
            [text('workflows.deadline'), status === 'RUNNING' && <DateTime key="deadline" at={deadline} />],
            [text('workflows.cost'), cost !== null && <Money key="cost" amount={cost} />],
          ]}
        />
        <Drawn
          run={run}
          nodes={nodes}
          open={node}
          onOpen={(node) => void navigate({ search: { node }, replace: true, resetScroll: false })}
        />
        <div className="grid gap-6 lg:grid-cols-2">
          <Block title={text('workflows.inputs')} value={inputs} />
          {status === 'COMPLETED' && loaded.status === 'COMPLETED' && <Block title={text('workflows.output')} value={output} />}
        </div>
      </div>
    </>
  )
}

interface DrawnProps {
  readonly run: Pick<Run, 'workflowId' | 'workflowVersion'>
  readonly nodes: ReturnType<typeof apply>['nodes']
  readonly open: string | undefined
  readonly onOpen: (node: string | undefined) => void
}

/** The nodes as the version of the run has them. */
function Drawn({ run: { workflowId, workflowVersion }, ...rest }: DrawnProps) {
  const result = useQueryResult(VERSION, { id: workflowId, version: workflowVersion })
  if (result.state === 'loading') return <Skeleton className="h-80 rounded-xl" />
  const definition = result.state === 'ready' ? (result.data.workflow?.atVersion?.definition as Definition | undefined) : undefined
  return <Nodes definition={definition ?? null} run={rest.nodes} open={rest.open} onOpen={rest.onOpen} />
}

function Block({ title, value }: { readonly title: string; readonly value: unknown }): ReactNode {
  const text = useText()
  const source = writeJson(value)
  return (
    <section className="min-w-0">
      <div className="mb-2 flex items-center justify-between">
        <h2 className="text-base">{title}</h2>
        <CopyButton value={source} label={text('workflows.copyBlock', { title })} />
      </div>
      <Source label={title} source={source} />
    </section>
  )
}

function RunError({ error }: { readonly error: NonNullable<Run['error']> }) {
  return (
    <Notice tone="danger">
      <FailureText failure={failureOfWork(error)} />
      {error.nodeId !== null && (
        <p className="mt-1">
          <Text id="workflows.failedAt" values={{ node: <Code>{error.nodeId}</Code> }} />
        </p>
      )}
    </Notice>
  )
}

function Actions({ run: { id, status, workflow, workflowId } }: { readonly run: Pick<Run, 'id' | 'status' | 'workflow' | 'workflowId'> }) {
  const text = useText()
  const navigate = route.useNavigate()
  const mayReadUsage = useScope('BILLING_READ')
  const [step, setStep] = useState<'cancel' | 'delete' | null>(null)
  const cancel = useAction(CANCEL)
  const remove = useAction(DELETE_RUN)
  const close = () => {
    cancel.reset()
    remove.reset()
    setStep(null)
  }
  return (
    <>
      {mayReadUsage && (
        <Button asChild>
          <Link to="/usage" search={{ tab: 'records', request: id }}>
            <ReceiptText className="size-4" aria-hidden />
            {text('workflows.receipt')}
          </Link>
        </Button>
      )}
      {status === 'RUNNING' ? (
        <Button icon={CircleStop} onClick={() => setStep('cancel')}>
          {text('workflows.cancel')}
        </Button>
      ) : (
        <Button icon={Trash2} onClick={() => setStep('delete')}>
          {text('common.delete')}
        </Button>
      )}
      {workflow && status !== 'RUNNING' && (
        <Button asChild variant="primary">
          <Link to="/workflows/$id" params={{ id: workflowId }} search={{ tab: 'run', from: id }}>
            <RotateCw className="size-4" aria-hidden />
            {text('workflows.runAgain')}
          </Link>
        </Button>
      )}
      <ConfirmDialog
        isOpen={step === 'cancel'}
        onClose={close}
        title={text('workflows.cancelTitle')}
        description={text('workflows.cancelHelp')}
        action={text('workflows.cancel')}
        isDangerous
        onConfirm={async () => {
          if (!(await cancel.run({ id }))) return false
          toast(text('workflows.cancelled'))
          return true
        }}
      >
        <FailureNotice failure={cancel.failure} />
      </ConfirmDialog>
      <ConfirmDialog
        isOpen={step === 'delete'}
        onClose={close}
        title={text('workflows.deleteRunTitle')}
        description={text('workflows.deleteRunHelp')}
        action={text('workflows.deleteRun')}
        isDangerous
        onConfirm={async () => {
          if (!(await remove.run({ id }))) return false
          toast(text('workflows.runDeleted'))
          void navigate(workflow ? { to: '/workflows/$id', params: { id: workflowId }, search: { tab: 'runs' } } : { to: '/workflows' })
          return true
        }}
      >
        <FailureNotice failure={remove.failure} />
      </ConfirmDialog>
    </>
  )
}
