import { type FormEvent, useState } from 'react'
import { useScope } from '../../app/session.tsx'
import { useAction } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { StatusBadge } from '../../parts/badges.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { useFieldFailures } from '../../parts/field-failure.tsx'
import { Money } from '../../parts/money.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { toAmount } from '../../parts/typed-number.ts'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Field } from '../../ui/field.tsx'
import { Input } from '../../ui/input.tsx'
import { Card, Notice } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { type Organization, UPDATE } from './organization.ts'

const TONES = { ACTIVE: 'success', SUSPENDED: 'danger', DELETING: 'danger', DELETED: 'neutral' } as const

/** The name, the warning of a low balance, and what cannot be changed. */
export function General({ organization }: { readonly organization: Organization }) {
  const text = useText()
  const isAdmin = useScope('ADMIN')
  const { id, name, status, createdAt, lowBalanceThreshold, suspensionReason } = organization
  return (
    <Card aria-labelledby="general">
      <h2 id="general" className="mb-4 text-base">
        {text('organization.general')}
      </h2>
      {status === 'SUSPENDED' && (
        <div className="mb-4">
          <Notice tone="danger">
            {text('error.organization_suspended')} {suspensionReason && <UserText isWhole>{suspensionReason}</UserText>}
          </Notice>
        </div>
      )}
      {isAdmin && <GeneralForm key={`${name} ${lowBalanceThreshold}`} organization={organization} />}
      <FactList
        facts={[
          [text('organization.name'), !isAdmin && <UserText key="name">{name}</UserText>],
          [text('organization.threshold'), !isAdmin && lowBalanceThreshold && <Money key="threshold" amount={lowBalanceThreshold} />],
          [
            text('organization.id'),
            <span key="id" className="flex items-center gap-1">
              <Code>{id}</Code>
              <CopyButton value={id} label={text('organization.copyId')} />
            </span>,
          ],
          [text('organization.status'), <StatusBadge key="status" tone={TONES[status]} label={`organization.status.${status}`} />],
          [text('organization.created'), <DateTime key="created" at={createdAt} style="date" />],
        ]}
      />
    </Card>
  )
}

const MAX_NAME = 100

function GeneralForm({ organization }: { readonly organization: Organization }) {
  const text = useText()
  const [name, setName] = useState(organization.name)
  const [threshold, setThreshold] = useState(organization.lowBalanceThreshold ?? '')
  const [isTried, setTried] = useState(false)
  const save = useAction(UPDATE)
  const failures = useFieldFailures(save.failure, ['name', 'lowBalanceThreshold'])
  const length = [...name.trim()].length
  const isNamed = length > 0 && length <= MAX_NAME
  const amount = threshold.trim() === '' ? null : toAmount(threshold)
  const isAmount = threshold.trim() === '' || (amount !== null && Number(amount) > 0)
  const isChanged = name.trim() !== organization.name || amount !== organization.lowBalanceThreshold
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isNamed || !isAmount || !isChanged) return
    const saved = await save.run({ input: { name: name.trim(), lowBalanceThreshold: amount } })
    if (saved) toast(text('organization.saved'))
  }
  return (
    <form noValidate onSubmit={submit} className="mb-6 flex flex-col gap-4">
      <FailureNotice failure={failures.rest} />
      <div className="grid gap-4 sm:grid-cols-2">
        <Field
          label={text('organization.name')}
          isRequired
          error={isTried && !isNamed ? text('organization.problem.name') : failures.of('name')}
        >
          {(control) => <Input {...control} value={name} onChange={({ target }) => setName(target.value)} />}
        </Field>
        <Field
          label={text('organization.threshold')}
          help={text('organization.thresholdHelp')}
          error={isTried && !isAmount ? text('wallet.problem.amount') : failures.of('lowBalanceThreshold')}
        >
          {(control) => <Input {...control} inputMode="decimal" value={threshold} onChange={({ target }) => setThreshold(target.value)} />}
        </Field>
      </div>
      <div className="flex justify-end">
        <Button type="submit" isBusy={save.isRunning} disabled={!isChanged}>
          {text('common.save')}
        </Button>
      </div>
    </form>
  )
}
