import { getRouteApi, Link } from '@tanstack/react-router'
import { Pencil, Play, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { Text, useText } from '../../i18n/text.tsx'
import { Digits } from '../../parts/digits.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { FailureNotice, NotFound, WhenReady } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog, Dialog } from '../../ui/dialog.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { toast } from '../../ui/toast.tsx'
import { Editor } from './editor.tsx'
import type { Tab, WorkflowSearch } from './filters.ts'
import { NameFields, useNameProblems } from './name-fields.tsx'
import { Nodes } from './nodes.tsx'
import type { Definition } from './rules/definition.ts'
import { RunForm } from './run-form.tsx'
import { Runs } from './runs-list.tsx'
import { Versions } from './versions.tsx'
import { DELETE, UPDATE, WORKFLOW, type Workflow } from './workflows.ts'

const route = getRouteApi('/workflows/$id')

export function WorkflowPage() {
  const text = useText()
  const { id } = route.useParams()
  const result = useQueryResult(WORKFLOW, { id }, { types: ['Workflow'] })
  const back = <Link to="/workflows">{text('workflows.title')}</Link>
  if (result.state !== 'ready' || !result.data.workflow) {
    return (
      <>
        <PageHeader title={text('workflows.workflow')} back={back} />
        <WhenReady result={result}>{() => <NotFound />}</WhenReady>
      </>
    )
  }
  const workflow = result.data.workflow
  return (
    <>
      <PageHeader
        title={workflow.name}
        heading={<UserText isWhole>{workflow.name}</UserText>}
        lead={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm">
            <Code>{workflow.code}</Code>
            <span>
              <Text
                id="workflows.versionSaved"
                values={{ version: <Digits value={workflow.version} />, at: <RelativeTime at={workflow.updatedAt} /> }}
              />
            </span>
          </span>
        }
        back={back}
        actions={<Actions workflow={workflow} />}
      />
      <Views key={workflow.id} workflow={workflow} />
    </>
  )
}

function Views({ workflow }: { readonly workflow: Workflow }) {
  const text = useText()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: WorkflowSearch) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const open = (tab: Tab) => void navigate({ search: { tab: tab === 'graph' ? undefined : tab }, resetScroll: false })
  const definition = workflow.definition as Definition
  return (
    <Tabs
      label={text('workflows.views')}
      value={search.tab ?? 'graph'}
      onChange={open}
      tabs={[
        {
          value: 'graph',
          label: text('workflows.tab.graph'),
          content: <Nodes definition={definition} open={search.node} onOpen={(node) => change({ node })} />,
        },
        { value: 'editor', label: text('workflows.tab.editor'), content: <Editor workflow={workflow} /> },
        { value: 'run', label: text('workflows.tab.run'), content: <RunForm workflow={workflow} from={search.from} /> },
        {
          value: 'runs',
          label: text('workflows.tab.runs'),
          content: <Runs workflowId={workflow.id} status={search.status} onStatus={(status) => change({ status })} />,
        },
        {
          value: 'versions',
          label: text('workflows.tab.versions'),
          content: <Versions workflow={workflow} open={search.version} onOpen={(version) => change({ version })} />,
        },
      ]}
    />
  )
}

function Actions({ workflow }: { readonly workflow: Workflow }) {
  const text = useText()
  const navigate = route.useNavigate()
  const { tab } = route.useSearch()
  const [step, setStep] = useState<'rename' | 'delete' | null>(null)
  const remove = useAction(DELETE)
  const { id, name } = workflow
  const close = () => setStep(null)
  return (
    <>
      <Button icon={Trash2} onClick={() => setStep('delete')}>
        {text('common.delete')}
      </Button>
      <Button icon={Pencil} onClick={() => setStep('rename')}>
        {text('workflows.rename')}
      </Button>
      {tab !== 'run' && (
        <Button asChild variant="primary">
          <Link to="/workflows/$id" params={{ id }} search={{ tab: 'run' }}>
            <Play className="size-4 rtl:-scale-x-100" aria-hidden />
            {text('workflows.runIt')}
          </Link>
        </Button>
      )}
      <Rename isOpen={step === 'rename'} onClose={close} workflow={workflow} />
      <ConfirmDialog
        isOpen={step === 'delete'}
        onClose={() => {
          remove.reset()
          close()
        }}
        title={<Text id="workflows.deleteTitle" values={{ name: <UserText isWhole>{name}</UserText> }} />}
        description={text('workflows.deleteHelp')}
        action={text('workflows.delete')}
        isDangerous
        onConfirm={async () => {
          if (!(await remove.run({ id }))) return false
          toast(text('workflows.deleted'))
          void navigate({ to: '/workflows', ignoreBlocker: true })
          return true
        }}
      >
        <FailureNotice failure={remove.failure} />
      </ConfirmDialog>
    </>
  )
}

interface RenameProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly workflow: Workflow
}

function Rename({ isOpen, onClose, workflow }: RenameProps) {
  const text = useText()
  const update = useUpdate()
  const close = () => {
    update.reset()
    onClose()
  }
  return (
    <Dialog
      isOpen={isOpen}
      onClose={close}
      title={text('workflows.rename')}
      description={text('workflows.renameHelp')}
      actions={
        <>
          <Button onClick={close}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="rename-form" isBusy={update.isRunning}>
            {text('common.save')}
          </Button>
        </>
      }
    >
      <RenameFields workflow={workflow} update={update} onSaved={close} />
    </Dialog>
  )
}

const useUpdate = () => useAction(UPDATE)

interface RenameFieldsProps {
  readonly workflow: Workflow
  readonly update: ReturnType<typeof useUpdate>
  readonly onSaved: () => void
}

function RenameFields({ workflow, update, onSaved }: RenameFieldsProps) {
  const text = useText()
  const [name, setName] = useState(workflow.name)
  const [code, setCode] = useState(workflow.code)
  const [isTried, setTried] = useState(false)
  const problems = useNameProblems({ name, code }, isTried, update.failure)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!problems.isRight || !(await update.run({ input: { id: workflow.id, name: name.trim(), code } }))) return
    toast(text('workflows.saved'))
    onSaved()
  }
  return (
    <form id="rename-form" onSubmit={submit} noValidate className="flex flex-col gap-5">
      <FailureNotice failure={problems.rest} />
      <NameFields name={name} code={code} onName={setName} onCode={setCode} problems={problems} />
    </form>
  )
}
