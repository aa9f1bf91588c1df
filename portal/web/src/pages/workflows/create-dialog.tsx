import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { codeOf } from '../../parts/code.ts'
import { FailureNotice } from '../../parts/states.tsx'
import { Button } from '../../ui/button.tsx'
import { RadioGroup } from '../../ui/choices.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input, Select } from '../../ui/input.tsx'
import { NameFields, useNameProblems } from './name-fields.tsx'
import { DEFINITIONS, type Needs, TEMPLATES, type TemplateName } from './rules/templates.ts'
import { CHAT_MODELS, COLLECTIONS, CREATE } from './workflows.ts'

/** Makes a workflow from a template, and opens its editor. */
export function CreateDialog({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const text = useText()
  const create = useCreate()
  const close = () => {
    create.reset()
    onClose()
  }
  return (
    <Dialog
      isOpen={isOpen}
      onClose={close}
      title={text('workflows.create')}
      actions={
        <>
          <Button onClick={close}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="workflow-form" isBusy={create.isRunning}>
            {text('common.create')}
          </Button>
        </>
      }
    >
      <Fields create={create} />
    </Dialog>
  )
}

type CreateAction = ReturnType<typeof useCreate>
const useCreate = () => useAction(CREATE)

function Fields({ create }: { readonly create: CreateAction }) {
  const text = useText()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [code, setCode] = useState<string | null>(null)
  const [template, setTemplate] = useState<TemplateName>('blank')
  const [needs, setNeeds] = useState<Needs>({ model: '', collection: '' })
  const [isTried, setTried] = useState(false)
  const { failure } = create
  const shownCode = code ?? codeOf(name, 'workflow')
  const problems = useNameProblems({ name, code: shownCode }, isTried, failure)
  const needed = DEFINITIONS[template].needs
  const missing = needed.filter((need) => needs[need].trim() === '')
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!problems.isRight || missing.length > 0) return
    const definition = DEFINITIONS[template].create(needs)
    const created = await create.run({ input: { name: name.trim(), code: shownCode, definition } })
    const id = created?.createWorkflow?.workflow.id
    if (id) void navigate({ to: '/workflows/$id', params: { id }, search: { tab: 'editor' } })
  }
  return (
    <form id="workflow-form" onSubmit={submit} noValidate className="flex flex-col gap-5">
      <FailureNotice failure={problems.rest} />
      <NameFields name={name} code={shownCode} onName={setName} onCode={setCode} problems={problems} />
      <div>
        <p aria-hidden className="mb-2 text-sm font-medium">
          {text('workflows.template')}
        </p>
        <RadioGroup
          label={text('workflows.template')}
          value={template}
          onChange={setTemplate}
          options={TEMPLATES.map((value) => ({
            value,
            label: text(`workflows.template.${value}`),
            help: text(`workflows.template.${value}.help`),
          }))}
        />
      </div>
      {needed.includes('collection') && (
        <CollectionField
          value={needs.collection}
          error={isTried && missing.includes('collection')}
          onChange={(collection) => setNeeds((now) => ({ ...now, collection }))}
        />
      )}
      {needed.includes('model') && (
        <ModelField
          value={needs.model}
          error={isTried && missing.includes('model')}
          onChange={(model) => setNeeds((now) => ({ ...now, model }))}
        />
      )}
    </form>
  )
}

interface NeedProps {
  readonly value: string
  readonly error: boolean
  readonly onChange: (value: string) => void
}

/** A choice; or the id in words, where the key may not list what there is. */
function NeedField({
  label,
  missing,
  options,
  value,
  error,
  onChange,
}: NeedProps & { readonly label: string; readonly missing: string; readonly options: readonly { value: string; label: string }[] | null }) {
  const text = useText()
  return (
    <Field label={label} error={error && missing} isRequired>
      {(control) =>
        options ? (
          <Select {...control} value={value} onChange={onChange} options={[{ value: '', label: text('workflows.choose') }, ...options]} />
        ) : (
          <Input {...control} dir="ltr" value={value} onChange={({ target }) => onChange(target.value)} />
        )
      }
    </Field>
  )
}

function ModelField(props: NeedProps) {
  const text = useText()
  const result = useQueryResult(CHAT_MODELS, {})
  const options =
    result.state === 'ready' ? result.data.models.map(({ id }) => ({ value: id, label: id })) : result.state === 'failed' ? null : []
  return <NeedField {...props} label={text('workflows.model')} missing={text('workflows.missing.model')} options={options} />
}

function CollectionField(props: NeedProps) {
  const text = useText()
  const result = useQueryResult(COLLECTIONS, {}, { types: ['Collection'] })
  const options =
    result.state === 'ready'
      ? (result.data.collections?.edges ?? []).map(({ node }) => ({ value: node.id, label: node.name }))
      : result.state === 'failed'
        ? null
        : []
  return <NeedField {...props} label={text('workflows.collection')} missing={text('workflows.missing.collection')} options={options} />
}
