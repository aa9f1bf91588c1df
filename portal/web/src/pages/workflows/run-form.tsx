import { useNavigate } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import { type FormEvent, useEffect, useMemo, useState } from 'react'
import type { Failure } from '../../data/failure.ts'
import type { VariablesOf } from '../../data/graphql.ts'
import { useEvents, useQueryResult } from '../../data/query-result.ts'
import { Text, useText } from '../../i18n/text.tsx'
import { FailureText } from '../../parts/failure-text.tsx'
import { useMoney } from '../../parts/money.tsx'
import { FailureNotice, Loading } from '../../parts/states.tsx'
import { toAmount } from '../../parts/typed-number.ts'
import { UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/choices.tsx'
import { Field } from '../../ui/field.tsx'
import { Input, Select, Textarea } from '../../ui/input.tsx'
import { Card, Notice } from '../../ui/surface.tsx'
import { useProblemText } from './problem-text.ts'
import type { Definition } from './rules/definition.ts'
import { type FieldProblem, fieldsOf, type InputDraft, type InputField, readInputs, WHOLE } from './rules/inputs.ts'
import { RUN, START } from './runs.ts'
import type { Workflow } from './workflows.ts'

type RunInput = VariablesOf<typeof START>['input']

/** Without it in the definition, a run may cost this much. */
const DEFAULT_MAX_COST = '1'

/** Asks for the inputs of a run, and starts it. `from`: the run whose inputs stand there first. */
export function RunForm({ workflow, from }: { readonly workflow: Workflow; readonly from: string | undefined }) {
  const earlier = useQueryResult(RUN, { id: from ?? '' }, { pause: from === undefined })
  if (from !== undefined && earlier.state === 'loading') return <Loading />
  const inputs = from !== undefined && earlier.state === 'ready' ? earlier.data.workflowRun?.inputs : undefined
  return <Form key={`${workflow.version} ${from}`} workflow={workflow} earlier={inputs} />
}

function Form({ workflow, earlier }: { readonly workflow: Workflow; readonly earlier: unknown }) {
  const text = useText()
  const money = useMoney()
  const navigate = useNavigate()
  const { inputs: schema, max_cost_usd: limit = DEFAULT_MAX_COST } = workflow.definition as Definition
  const fields = useMemo(() => fieldsOf(schema, earlier), [schema, earlier])
  const [draft, setDraft] = useState<InputDraft>({})
  const [maxCost, setMaxCost] = useState('')
  const [isTried, setTried] = useState(false)
  const [input, setInput] = useState<RunInput | null>(null)
  const [failure, setFailure] = useState<Failure | null>(null)
  const { inputs, problems } = readInputs(schema, fields, draft)
  const amount = maxCost.trim() === '' ? null : toAmount(maxCost)
  const isCostWrong = maxCost.trim() !== '' && (amount === null || !(Number(amount) > 0))
  const failedField = fields.find(({ name }) => name !== '' && failure?.param?.replace(/^input\./, '').startsWith(`inputs.${name}`))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    setFailure(null)
    if (problems.size > 0 || isCostWrong) return
    setInput({ workflowId: workflow.id, inputs, maxCost: amount, idempotencyKey: crypto.randomUUID() })
  }
  return (
    <form onSubmit={submit} noValidate className="flex max-w-2xl flex-col gap-5" aria-label={text('workflows.tab.run')}>
      <FailureNotice failure={failedField ? null : failure} />
      <Card className="flex flex-col gap-5">
        {fields[0]?.name === WHOLE && <Notice>{text('workflows.anyInputs')}</Notice>}
        {fields.map((field) => (
          <InputControl
            key={field.name}
            field={field}
            typed={draft[field.name] ?? field.start}
            onChange={(typed) => setDraft((now) => ({ ...now, [field.name]: typed }))}
            problem={isTried ? problems.get(field.name) : undefined}
            refusal={failedField === field ? failure : null}
          />
        ))}
      </Card>
      <Field
        label={text('workflows.maxCost')}
        help={text('workflows.maxCostHelp', { limit: money(limit, 'down') })}
        error={isTried && isCostWrong && text('workflows.problem.maxCost')}
      >
        {(control) => (
          <Input
            {...control}
            inputMode="decimal"
            className="max-w-48"
            value={maxCost}
            onChange={({ target }) => setMaxCost(target.value)}
          />
        )}
      </Field>
      <div>
        <Button variant="primary" type="submit" isBusy={input !== null}>
          {input === null && <Play className="size-4 rtl:-scale-x-100" aria-hidden />}
          {text('workflows.start')}
        </Button>
      </div>
      {input && (
        <Starter
          key={input.idempotencyKey}
          input={input}
          onStarted={(runId) => void navigate({ to: '/workflows/$id/runs/$runId', params: { id: workflow.id, runId } })}
          onFailure={(failure) => {
            setInput(null)
            setFailure(failure)
          }}
        />
      )}
    </form>
  )
}

interface StarterProps {
  readonly input: RunInput
  readonly onStarted: (runId: string) => void
  readonly onFailure: (failure: Failure) => void
}

/** Starts one run. A lost connection asks again with the same key, and so gets the same run. */
function Starter({ input, onStarted, onFailure }: StarterProps) {
  const failure = useEvents(START, { input }, ({ workflowRun }) => {
    if (workflowRun.type === 'RUN_STARTED') onStarted(workflowRun.runId)
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: it fails once.
  useEffect(() => {
    if (failure) onFailure(failure)
  }, [failure])
  return null
}

interface InputControlProps {
  readonly field: InputField
  readonly typed: string
  readonly onChange: (typed: string) => void
  readonly problem: FieldProblem | undefined
  /** What the service said. */
  readonly refusal: Failure | null
}

function InputControl({ field, typed, onChange, problem, refusal }: InputControlProps) {
  const text = useText()
  const problemText = useProblemText()
  const { name, kind, title, description, isRequired, choices } = field
  const error =
    problem === undefined
      ? refusal && <FailureText failure={refusal} />
      : typeof problem === 'string'
        ? text(`workflows.input.${problem}`)
        : problemText(problem)
  const shownTitle = name === WHOLE ? text('workflows.inputs') : <UserText isWhole>{title}</UserText>
  const label = isRequired || kind === 'boolean' ? shownTitle : <Text id="workflows.optional" values={{ name: shownTitle }} />
  const help = [
    description && (
      <UserText key="description" isWhole>
        {description}
      </UserText>
    ),
    kind === 'lines' && <span key="lines"> {text('workflows.input.linesHelp')}</span>,
    kind === 'json' && <span key="json"> {text('workflows.input.jsonHelp')}</span>,
  ].filter(Boolean)
  if (kind === 'boolean') {
    return (
      <div>
        <Checkbox
          label={shownTitle}
          help={description && <UserText isWhole>{description}</UserText>}
          checked={typed === 'true'}
          onChange={(isOn) => onChange(String(isOn))}
        />
        {error && (
          <p role="alert" className="mt-1 text-sm text-danger-text">
            {error}
          </p>
        )}
      </div>
    )
  }
  return (
    <Field label={label} help={help.length > 0 && help} error={error} isRequired={isRequired}>
      {(control) => {
        const shared = { ...control, value: typed }
        if (kind === 'choice') {
          const options = choices.map((choice, index) => ({
            value: String(index),
            label: typeof choice === 'string' ? choice : JSON.stringify(choice),
          }))
          return <Select {...shared} onChange={onChange} options={[{ value: '', label: text('workflows.choose') }, ...options]} />
        }
        if (kind === 'number' || kind === 'integer') {
          return (
            <Input
              {...shared}
              inputMode={kind === 'integer' ? 'numeric' : 'decimal'}
              className="max-w-48"
              onChange={({ target }) => onChange(target.value)}
            />
          )
        }
        if (kind === 'json') {
          return (
            <Textarea
              {...shared}
              dir="ltr"
              rows={6}
              spellCheck={false}
              className="font-mono"
              onChange={({ target }) => onChange(target.value)}
            />
          )
        }
        return <Textarea {...shared} rows={kind === 'lines' ? 4 : 2} onChange={({ target }) => onChange(target.value)} />
      }}
    </Field>
  )
}
