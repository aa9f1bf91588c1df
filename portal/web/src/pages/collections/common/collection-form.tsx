import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useId, useState } from 'react'
import { useAction } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { codeOf } from '../../../parts/code.ts'
import { useFieldFailures } from '../../../parts/field-failure.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { Button } from '../../../ui/button.tsx'
import { Switch } from '../../../ui/choices.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Textarea } from '../../../ui/input.tsx'
import { toast } from '../../../ui/toast.tsx'
import { CREATE_COLLECTION, UPDATE_COLLECTION } from './collections.ts'
import { EmbeddingChoice, HelperChoice } from './model-choice.tsx'

/** What the service takes as a code. */
const CODE = /^[a-z0-9][\w.-]{0,63}$/i
const MAX_NAME = 200
const MAX_DESCRIPTION = 2000
const FIELDS = ['name', 'code', 'description', 'embeddingModel', 'rerankModel', 'transcriptionModel', 'ocr']

/** What the forms of a collection have in common. */
interface CollectionValues {
  readonly name: string
  readonly code: string
  readonly description: string
  readonly ocr: boolean
  readonly rerankModel: string
  readonly transcriptionModel: string
}

const EMPTY: CollectionValues = { name: '', code: '', description: '', ocr: false, rerankModel: '', transcriptionModel: '' }

export function CreateCollection({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const text = useText()
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={text('collections.create')} description={text('collections.createHelp')}>
      <CreateForm onClose={onClose} />
    </Dialog>
  )
}

function CreateForm({ onClose }: { readonly onClose: () => void }) {
  const text = useText()
  const navigate = useNavigate()
  const { run, isRunning, failure } = useAction(CREATE_COLLECTION)
  const failures = useFieldFailures(failure, FIELDS)
  const [values, setValues] = useState(EMPTY)
  // The code follows the name until somebody writes one.
  const [ownCode, setOwnCode] = useState(false)
  const [embeddingModel, setEmbeddingModel] = useState('')
  const [isTried, setTried] = useState(false)
  const problemOf = useProblem(values)
  const change = (next: Partial<CollectionValues>) =>
    setValues((now) => ({ ...now, ...next, ...(next.name !== undefined && !ownCode && { code: codeOf(next.name, 'collection') }) }))
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!values.name.trim() || !CODE.test(values.code.trim()) || !embeddingModel.trim()) return
    const done = await run({
      input: {
        name: values.name,
        code: values.code,
        embeddingModel: embeddingModel.trim(),
        description: values.description.trim() || null,
        rerankModel: values.rerankModel || null,
        transcriptionModel: values.transcriptionModel || null,
        ocr: values.ocr ? 'AUTO' : 'OFF',
      },
    })
    if (!done) return
    toast(text('collections.created'))
    void navigate({ to: '/collections/$id', params: { id: done.createCollection.collection.id } })
  }
  return (
    <form noValidate onSubmit={submit} className="flex flex-col gap-5">
      <Texts
        values={values}
        onChange={change}
        onCode={() => setOwnCode(true)}
        error={(field) => failures.of(field) ?? (isTried ? problemOf(field) : undefined)}
      />
      <fieldset className="flex flex-col gap-1.5">
        <legend className="mb-1.5 text-sm font-medium">{text('collections.embeddingModel')}</legend>
        <EmbeddingChoice label={text('collections.embeddingModel')} value={embeddingModel} onChange={setEmbeddingModel} />
        <p className="text-sm text-muted">{text('collections.embeddingHelp')}</p>
        {(failures.of('embeddingModel') || (isTried && !embeddingModel)) && (
          <p role="alert" className="text-sm text-danger-text">
            {failures.of('embeddingModel') ?? text('collections.embeddingNeeded')}
          </p>
        )}
      </fieldset>
      <Helpers values={values} onChange={change} error={failures.of} />
      <FailureNotice failure={failures.rest} />
      <footer className="flex flex-wrap justify-end gap-2">
        <Button onClick={onClose}>{text('common.cancel')}</Button>
        <Button type="submit" variant="primary" isBusy={isRunning}>
          {text('collections.createAction')}
        </Button>
      </footer>
    </form>
  )
}

interface EditableCollection {
  readonly id: string
  readonly name: string
  readonly code: string
  readonly description: string | null
  readonly ocr: 'OFF' | 'AUTO'
  readonly rerankModel: { readonly id: string } | null
  readonly transcriptionModel: { readonly id: string } | null
}

/** The settings of a collection, to change. It sends only what was changed. */
export function EditForm({
  collection,
  onDone,
  onCancel,
}: {
  readonly collection: EditableCollection
  readonly onDone?: () => void
  readonly onCancel?: () => void
}) {
  const text = useText()
  const formId = useId()
  const { run, isRunning, failure } = useAction(UPDATE_COLLECTION)
  const failures = useFieldFailures(failure, FIELDS)
  const before: CollectionValues = {
    name: collection.name,
    code: collection.code,
    description: collection.description ?? '',
    ocr: collection.ocr === 'AUTO',
    rerankModel: collection.rerankModel?.id ?? '',
    transcriptionModel: collection.transcriptionModel?.id ?? '',
  }
  const [changes, setChanges] = useState<Partial<CollectionValues>>({})
  const values = { ...before, ...changes }
  const problemOf = useProblem(values)
  const isChanged = (field: keyof CollectionValues) => values[field] !== before[field]
  const isDirty = (Object.keys(before) as (keyof CollectionValues)[]).some(isChanged)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (!values.name.trim() || !CODE.test(values.code.trim())) return
    const done = await run({
      input: {
        id: collection.id,
        ...(isChanged('name') && { name: values.name }),
        ...(isChanged('code') && { code: values.code }),
        ...(isChanged('description') && { description: values.description.trim() || null }),
        ...(isChanged('ocr') && { ocr: values.ocr ? ('AUTO' as const) : ('OFF' as const) }),
        ...(isChanged('rerankModel') && { rerankModel: values.rerankModel || null }),
        ...(isChanged('transcriptionModel') && { transcriptionModel: values.transcriptionModel || null }),
      },
    })
    if (!done) return
    setChanges({})
    toast(text('collections.saved'))
    onDone?.()
  }
  const change = (next: Partial<CollectionValues>) => setChanges((now) => ({ ...now, ...next }))
  return (
    <form id={formId} noValidate onSubmit={submit} className="flex flex-col gap-5">
      <Texts values={values} onChange={change} error={(field) => failures.of(field) ?? problemOf(field)} />
      <Helpers values={values} onChange={change} error={failures.of} />
      <FailureNotice failure={failures.rest} />
      <footer className="flex flex-wrap justify-end gap-2">
        {onCancel ? (
          <Button onClick={onCancel}>{text('common.cancel')}</Button>
        ) : (
          isDirty && <Button onClick={() => setChanges({})}>{text('collections.discard')}</Button>
        )}
        <Button type="submit" variant="primary" isBusy={isRunning} disabled={!isDirty}>
          {text('common.save')}
        </Button>
      </footer>
    </form>
  )
}

/** What is wrong with a name or a code before the service sees it. */
function useProblem(values: CollectionValues): (field: string) => string | undefined {
  const text = useText()
  return (field) => {
    if (field === 'name' && !values.name.trim()) return text('collections.needed')
    if (field === 'code' && !CODE.test(values.code.trim())) return text('collections.codeWrong')
    return undefined
  }
}

interface PartProps {
  readonly values: CollectionValues
  readonly onChange: (next: Partial<CollectionValues>) => void
  readonly error: (field: string) => ReactNode
}

function Texts({ values, onChange, onCode, error }: PartProps & { readonly onCode?: () => void }) {
  const text = useText()
  return (
    <>
      <Field label={text('collections.name')} isRequired error={error('name')}>
        {(control) => (
          <Input {...control} maxLength={MAX_NAME} value={values.name} onChange={({ target }) => onChange({ name: target.value })} />
        )}
      </Field>
      <Field label={text('collections.code')} help={text('collections.codeHelp')} isRequired error={error('code')}>
        {(control) => (
          <Input
            {...control}
            dir="ltr"
            maxLength={64}
            spellCheck={false}
            autoCapitalize="none"
            value={values.code}
            onChange={({ target }) => {
              onCode?.()
              onChange({ code: target.value })
            }}
          />
        )}
      </Field>
      <Field label={text('collections.description')} help={text('collections.descriptionHelp')}>
        {(control) => (
          <Textarea
            {...control}
            rows={2}
            maxLength={MAX_DESCRIPTION}
            value={values.description}
            onChange={({ target }) => onChange({ description: target.value })}
          />
        )}
      </Field>
    </>
  )
}

function Helpers({ values, onChange, error }: PartProps) {
  const text = useText()
  return (
    <>
      <Switch
        label={text('collections.ocr')}
        help={text('collections.ocrHelp')}
        checked={values.ocr}
        onChange={(ocr) => onChange({ ocr })}
      />
      <Field label={text('collections.rerankModel')} help={text('collections.rerankHelp')} error={error('rerankModel')}>
        {(control) => (
          <HelperChoice kind="rerank" control={control} value={values.rerankModel} onChange={(rerankModel) => onChange({ rerankModel })} />
        )}
      </Field>
      <Field
        label={text('collections.transcriptionModel')}
        help={text('collections.transcriptionHelp')}
        error={error('transcriptionModel')}
      >
        {(control) => (
          <HelperChoice
            kind="transcription"
            control={control}
            value={values.transcriptionModel}
            onChange={(transcriptionModel) => onChange({ transcriptionModel })}
          />
        )}
      </Field>
    </>
  )
}
