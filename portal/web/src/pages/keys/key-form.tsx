import { type FormEvent, useState } from 'react'
import { holds, type Scope, useViewer } from '../../app/session.tsx'
import type { Failure } from '../../data/failure.ts'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/choices.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input, Select } from '../../ui/input.tsx'
import { type Draft, type DraftProblem, PERIODS, problemsOf } from './draft.ts'
import { MODEL_IDS } from './keys.ts'

const SCOPES = ['INFERENCE', 'KNOWLEDGE_READ', 'KNOWLEDGE_WRITE', 'AGENTS', 'BILLING_READ', 'ADMIN', 'OPERATOR'] as const

interface KeyFormProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly title: string
  readonly action: string
  readonly start: Draft
  readonly isBusy: boolean
  readonly failure: Failure | null
  readonly onSubmit: (draft: Draft) => void
}

/** The fields of a key, new or known. */
export function KeyForm({ isOpen, onClose, title, action, isBusy, ...form }: KeyFormProps) {
  const text = useText()
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={title}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="key-form" isBusy={isBusy}>
            {action}
          </Button>
        </>
      }
    >
      <Fields {...form} />
    </Dialog>
  )
}

function Fields({ start, failure, onSubmit }: Pick<KeyFormProps, 'start' | 'failure' | 'onSubmit'>) {
  const text = useText()
  const { scopes: own } = useViewer()
  const [draft, setDraft] = useState(start)
  const [isTried, setTried] = useState(false)
  const models = useQueryResult(MODEL_IDS, {}, { pause: !holds(own, 'INFERENCE') })
  const change = (next: Partial<Draft>) => setDraft((now) => ({ ...now, ...next }))
  const problems = isTried ? problemsOf(draft) : {}
  const say = (problem: DraftProblem | undefined) => problem && text(`keys.problem.${problem}`)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (Object.keys(problemsOf(draft)).length === 0) onSubmit(draft)
  }
  const toggle = (scope: Scope) => (isOn: boolean) =>
    change({ scopes: isOn ? [...draft.scopes, scope] : draft.scopes.filter((each) => each !== scope) })

  return (
    <form id="key-form" onSubmit={submit} noValidate className="flex flex-col gap-5">
      <FailureNotice failure={failure} />
      <Field label={text('keys.name')} help={text('keys.nameHelp')} error={say(problems.name)} isRequired>
        {(control) => <Input {...control} value={draft.name} onChange={({ target }) => change({ name: target.value })} />}
      </Field>
      <fieldset className="flex flex-col gap-2">
        <legend className="mb-2 text-sm font-medium">{text('keys.scopes')}</legend>
        {SCOPES.filter((scope) => holds(own, scope)).map((scope) => (
          <Checkbox
            key={scope}
            label={text(`keys.scope.${scope}`)}
            help={text(`keys.scope.${scope}.help`)}
            checked={draft.scopes.includes(scope)}
            onChange={toggle(scope)}
          />
        ))}
        {problems.scopes && (
          <p role="alert" className="text-sm text-danger-text">
            {say(problems.scopes)}
          </p>
        )}
      </fieldset>
      <Field label={text('keys.models')} help={text('keys.modelsHelp')}>
        {(control) => (
          <Combobox
            {...control}
            isMultiple
            values={draft.models}
            onChange={(models) => change({ models })}
            options={models.state === 'ready' ? (models.data.models ?? []).map(({ id }) => ({ value: id, label: id })) : []}
            placeholder={text('keys.everyModel')}
          />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={text('keys.spendLimit')} help={text('keys.spendLimitHelp')} error={say(problems.spendAmount)}>
          {(control) => (
            <Input
              {...control}
              inputMode="decimal"
              value={draft.spendAmount}
              placeholder={text('keys.noLimit')}
              onChange={({ target }) => change({ spendAmount: target.value })}
            />
          )}
        </Field>
        <Field label={text('keys.period')}>
          {(control) => (
            <Select
              {...control}
              value={draft.spendPeriod}
              onChange={(spendPeriod) => change({ spendPeriod })}
              options={PERIODS.map((value) => ({ value, label: text(`keys.period.${value}`) }))}
            />
          )}
        </Field>
        <Field label={text('keys.requestsPerMinute')} error={say(problems.requestsPerMinute)}>
          {(control) => (
            <Input
              {...control}
              inputMode="numeric"
              value={draft.requestsPerMinute}
              placeholder={text('keys.asPlan')}
              onChange={({ target }) => change({ requestsPerMinute: target.value })}
            />
          )}
        </Field>
        <Field label={text('keys.tokensPerMinute')} error={say(problems.tokensPerMinute)}>
          {(control) => (
            <Input
              {...control}
              inputMode="numeric"
              value={draft.tokensPerMinute}
              placeholder={text('keys.asPlan')}
              onChange={({ target }) => change({ tokensPerMinute: target.value })}
            />
          )}
        </Field>
        <Field label={text('keys.lastDay')} help={text('keys.lastDayHelp')} error={say(problems.lastDay)}>
          {(control) => (
            <Input {...control} type="date" value={draft.lastDay} onChange={({ target }) => change({ lastDay: target.value })} />
          )}
        </Field>
      </div>
    </form>
  )
}
