import { ChevronRight } from 'lucide-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import { useScope } from '../../../app/session.tsx'
import type { Failure } from '../../../data/failure.ts'
import { useQueryResult } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { codeOf } from '../../../parts/code.ts'
import { FailureText } from '../../../parts/failure-text.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { UnsavedGuard } from '../../../parts/unsaved-guard.tsx'
import { Button } from '../../../ui/button.tsx'
import { Switch } from '../../../ui/choices.tsx'
import { Combobox } from '../../../ui/combobox.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Textarea } from '../../../ui/input.tsx'
import { Card } from '../../../ui/surface.tsx'
import { COLLECTIONS, MODELS } from '../base/agents.ts'
import { type Draft, inputOf, problemsOf } from './draft.ts'
import { SchemaField } from './schema-field.tsx'
import { Servers } from './servers.tsx'

interface AgentFormProps {
  readonly start: Draft
  readonly isNew?: boolean
  readonly action: string
  readonly isBusy: boolean
  readonly failure: Failure | null
  readonly onSubmit: (input: ReturnType<typeof inputOf>) => void
}

/** The fields of an agent, new or known. */
export function AgentForm({ start: initial, isNew, action, isBusy, failure, onSubmit }: AgentFormProps) {
  const text = useText()
  // What is given later is not what the reader began with: its servers have other keys.
  const [start] = useState(initial)
  const [draft, setDraft] = useState(start)
  const [isTried, setTried] = useState(false)
  const mayList = useScope('INFERENCE')
  const models = useQueryResult(MODELS, {}, { pause: !mayList })
  const collections = useQueryResult(COLLECTIONS, {}, { pause: !useScope('KNOWLEDGE_READ'), types: ['Collection'] })
  const change = (next: Partial<Draft>) => setDraft((now) => ({ ...now, ...next }))
  const problems = isTried ? problemsOf(draft) : {}
  const param = failure?.param?.replace(/^input\./, '') ?? null
  /** What is wrong with a field: by the form's own rules, or by the service's. */
  const say = (field: string): ReactNode => {
    const problem = problems[field]
    if (problem) return text(`agents.problem.${problem}`)
    return param === field || param?.startsWith(`${field}.`) ? failure && <FailureText failure={failure} /> : null
  }
  const isPlaced = param !== null && (FIELDS.test(param) || /^mcpServers\[\d+\]\.(name|url|headers|allowedTools)/.test(param))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (Object.keys(problemsOf(draft)).length === 0) return onSubmit(inputOf(draft))
    const form = event.currentTarget as HTMLFormElement
    requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid]')?.focus())
  }
  const known = models.state === 'ready' ? (models.data.models ?? []) : []
  // A field that is typed into would be taken away from its reader when the models are here.
  const isListed = models.state === 'loading' ? mayList : known.length > 0
  const chosen = known.find(({ id }) => id === draft.model)
  return (
    <form onSubmit={submit} noValidate aria-label={action} className="flex max-w-3xl flex-col gap-5">
      {!isNew && <UnsavedGuard isDirty={JSON.stringify(draft) !== JSON.stringify(start)} />}
      <Card className="flex flex-col gap-5">
        <div className="grid gap-5 sm:grid-cols-2">
          <Field label={text('agents.name')} error={say('name')} isRequired>
            {(control) => (
              <Input
                {...control}
                value={draft.name}
                onChange={({ target: { value } }) =>
                  // The code follows the name until somebody writes their own.
                  change(
                    isNew && draft.code === codeOf(draft.name, 'agent') ? { name: value, code: codeOf(value, 'agent') } : { name: value },
                  )
                }
              />
            )}
          </Field>
          <Field label={text('agents.code')} help={text('agents.codeHelp')} error={say('code')} isRequired>
            {(control) => <Input {...control} dir="ltr" value={draft.code} onChange={({ target }) => change({ code: target.value })} />}
          </Field>
        </div>
        <Field
          label={text('agents.model')}
          help={chosen && !chosen.supportsTools ? text('agents.modelWithoutTools') : text('agents.modelHelp')}
          error={say('model')}
          isRequired
        >
          {(control) =>
            isListed ? (
              <Combobox
                {...control}
                values={draft.model === '' ? [] : [draft.model]}
                onChange={([model = '']) => change({ model })}
                options={known.map(({ id, residency }) => ({ value: id, label: `${id} · ${text(`residency.${residency}`)}` }))}
                placeholder={text('agents.chooseModel')}
              />
            ) : (
              <Input {...control} dir="ltr" value={draft.model} onChange={({ target }) => change({ model: target.value })} />
            )
          }
        </Field>
        <Field label={text('agents.instructions')} help={text('agents.instructionsHelp')} error={say('instructions')}>
          {(control) => (
            <Textarea {...control} rows={8} value={draft.instructions} onChange={({ target }) => change({ instructions: target.value })} />
          )}
        </Field>
        <Field label={text('agents.collections')} help={text('agents.collectionsHelp')} error={say('collectionIds')}>
          {(control) => (
            <Combobox
              {...control}
              isMultiple
              values={draft.collectionIds}
              onChange={(collectionIds) => change({ collectionIds })}
              options={
                collections.state === 'ready'
                  ? (collections.data.collections?.edges ?? []).map(({ node }) => ({ value: node.id, label: node.name }))
                  : []
              }
              placeholder={text('agents.chooseCollections')}
            />
          )}
        </Field>
      </Card>
      <Section title={text('agents.answerForm')} isOpen={draft.hasSchema}>
        <Switch
          label={text('agents.hasSchema')}
          help={text('agents.hasSchemaHelp')}
          checked={draft.hasSchema}
          onChange={(hasSchema) => change({ hasSchema })}
        />
        {draft.hasSchema && (
          <SchemaField value={draft.schema} onChange={(schema) => change({ schema })} isTried={isTried} error={say('responseSchema')} />
        )}
      </Section>
      <Section title={text('agents.servers')} isOpen={draft.servers.length > 0 || (param?.startsWith('mcpServers') ?? false)}>
        <Servers servers={draft.servers} onChange={(servers) => change({ servers })} say={say} />
      </Section>
      <Section title={text('agents.limits')} isOpen>
        <div className="grid gap-5 sm:grid-cols-2">
          {NUMBERS.map(({ field, mode }) => (
            <Field key={field} label={text(`agents.${field}`)} help={text(`agents.${field}Help`)} error={say(field)}>
              {(control) => (
                <Input
                  {...control}
                  inputMode={mode}
                  value={draft[field]}
                  placeholder={field === 'maxCost' || field === 'maxSteps' ? undefined : text('agents.asModel')}
                  onChange={({ target }) => change({ [field]: target.value })}
                />
              )}
            </Field>
          ))}
        </div>
      </Section>
      <FailureNotice failure={isPlaced ? null : failure} />
      {isTried && (Object.keys(problems).length > 0 || isPlaced) && (
        <p role="status" className="text-sm text-danger-text">
          {text('agents.problem.some')}
        </p>
      )}
      <div>
        <Button variant="primary" type="submit" isBusy={isBusy}>
          {action}
        </Button>
      </div>
    </form>
  )
}

const NUMBERS = [
  { field: 'maxCost', mode: 'decimal' },
  { field: 'maxSteps', mode: 'numeric' },
  { field: 'maxOutputTokens', mode: 'numeric' },
  { field: 'temperature', mode: 'decimal' },
  { field: 'topP', mode: 'decimal' },
] as const
const FIELDS = /^(name|code|model|instructions|collectionIds|responseSchema|temperature|topP|maxOutputTokens|maxSteps|maxCost)(\.|$)/

/** A part of the form that opens and closes. */
function Section({ title, isOpen, children }: { readonly title: string; readonly isOpen: boolean; readonly children: ReactNode }) {
  return (
    <details open={isOpen} className="group rounded-xl border bg-surface">
      <summary className="flex items-center gap-2 rounded-xl px-4 py-3 font-medium sm:px-5">
        <ChevronRight className="size-4 text-muted group-open:rotate-90 rtl:-scale-x-100 rtl:group-open:scale-x-100" aria-hidden />
        {title}
      </summary>
      <div className="flex flex-col gap-5 px-4 pt-1 pb-5 sm:px-5">{children}</div>
    </details>
  )
}
