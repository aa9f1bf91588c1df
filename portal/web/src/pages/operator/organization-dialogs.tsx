import { type FormEvent, useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { Text, useText } from '../../i18n/text.tsx'
import { useFieldFailures } from '../../parts/field-failure.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { toAmount } from '../../parts/typed-number.ts'
import { UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { RadioGroup } from '../../ui/choices.tsx'
import { ConfirmDialog, Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input, Select } from '../../ui/input.tsx'
import { toast } from '../../ui/toast.tsx'
import { isBytes, LIMITS, type Limit, limitOf, typedOf } from './limits.ts'
import { ADJUST, ASSIGN_PLAN, DELETE, type Organization, PLANS, RESUME, SUSPEND, TOP_UP } from './operator.ts'

export type Step = 'plan' | 'wallet' | 'suspend' | 'resume' | 'delete'

interface StepProps {
  readonly organization: Organization
  readonly onClose: () => void
}

/** What an operator does with one organization. */
export function StepDialog({ step, organization, onClose }: StepProps & { readonly step: Step | null }) {
  const props = { organization, onClose }
  if (step === 'suspend') return <Suspend {...props} />
  if (step === 'resume') return <Resume {...props} />
  if (step === 'delete') return <Delete {...props} />
  if (step === 'plan') return <FormDialog {...props} title="operator.changePlan" help="operator.changePlanHelp" Form={PlanForm} />
  if (step === 'wallet') return <FormDialog {...props} title="operator.credit" help="operator.creditHelp" Form={CreditForm} />
  return null
}

interface FormProps extends StepProps {
  readonly onBusy: (isBusy: boolean) => void
}

interface FormDialogProps extends StepProps {
  readonly title: 'operator.changePlan' | 'operator.credit'
  readonly help: 'operator.changePlanHelp' | 'operator.creditHelp'
  readonly Form: (props: FormProps) => React.ReactNode
}

function FormDialog({ organization, onClose, title, help, Form }: FormDialogProps) {
  const text = useText()
  const [isBusy, setBusy] = useState(false)
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text(title)}
      description={text(help)}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="operator-form" isBusy={isBusy}>
            {text('common.save')}
          </Button>
        </>
      }
    >
      <Form organization={organization} onClose={onClose} onBusy={setBusy} />
    </Dialog>
  )
}

function PlanForm({ organization, onClose, onBusy }: FormProps) {
  const text = useText()
  const [plan, setPlan] = useState(organization.plan.code)
  const [typed, setTyped] = useState(() => typedOf(organization.limits))
  const [isTried, setTried] = useState(false)
  const result = useQueryResult(PLANS, {})
  const codes = result.state === 'ready' ? result.data.plans.map(({ code }) => code) : []
  const assign = useAction(ASSIGN_PLAN)
  const failures = useFieldFailures(assign.failure, ['plan', ...LIMITS])
  const isWrong = (limit: Limit) => limitOf(limit, typed[limit]) === undefined
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (LIMITS.some(isWrong)) return
    const limits = Object.fromEntries(LIMITS.map((limit) => [limit, limitOf(limit, typed[limit])]))
    const hasLimits = LIMITS.some((limit) => limits[limit] !== organization.limits[limit])
    const hasPlan = plan !== organization.plan.code
    if (!hasLimits && !hasPlan) return onClose()
    onBusy(true)
    const done = await assign.run({ input: { organizationId: organization.id, ...(hasPlan && { plan }), ...(hasLimits && { limits }) } })
    onBusy(false)
    if (!done) return
    toast(text('operator.planSaved'))
    onClose()
  }
  return (
    <form id="operator-form" noValidate onSubmit={submit} className="flex flex-col gap-4">
      <FailureNotice failure={failures.rest} />
      <Field label={text('operator.plan')} error={failures.of('plan')}>
        {(control) => (
          <Select
            {...control}
            value={plan}
            onChange={setPlan}
            options={(codes.includes(plan) ? codes : [plan, ...codes]).map((value) => ({ value, label: value }))}
          />
        )}
      </Field>
      <p className="text-sm text-muted">{text('operator.limitsHelp')}</p>
      <div className="grid gap-4 sm:grid-cols-2">
        {LIMITS.map((limit) => (
          <Field
            key={limit}
            label={text(`operator.limit.${limit}`)}
            help={isBytes(limit) && text('operator.inMebibytes')}
            error={(isTried && isWrong(limit) && text('operator.problem.limit')) || failures.of(limit)}
          >
            {(control) => (
              <Input
                {...control}
                inputMode="decimal"
                value={typed[limit]}
                onChange={({ target }) => setTyped({ ...typed, [limit]: target.value })}
              />
            )}
          </Field>
        ))}
      </div>
    </form>
  )
}

const MAX_REFERENCE = 100

function CreditForm({ organization, onClose, onBusy }: FormProps) {
  const text = useText()
  const [kind, setKind] = useState<'topUp' | 'adjust'>('topUp')
  const [typed, setTyped] = useState('')
  const [reference, setReference] = useState('')
  const [isTried, setTried] = useState(false)
  const topUp = useAction(TOP_UP)
  const adjust = useAction(ADJUST)
  const isTopUp = kind === 'topUp'
  const failures = useFieldFailures((isTopUp ? topUp : adjust).failure, ['amount', 'reference'])
  const amount = toAmount(typed)
  const isAmount = amount !== null && (isTopUp ? Number(amount) > 0 : Number(amount) !== 0)
  const length = [...reference.trim()].length
  const isNamed = length > 0 && length <= MAX_REFERENCE
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isAmount || !isNamed) return
    onBusy(true)
    const done = await (isTopUp ? topUp : adjust).run({ input: { organizationId: organization.id, amount, reference: reference.trim() } })
    onBusy(false)
    if (!done) return
    toast(text('operator.credited'))
    onClose()
  }
  return (
    <form id="operator-form" noValidate onSubmit={submit} className="flex flex-col gap-4">
      <FailureNotice failure={failures.rest} />
      <RadioGroup
        label={text('operator.credit')}
        value={kind}
        onChange={setKind}
        options={(['topUp', 'adjust'] as const).map((value) => ({
          value,
          label: text(`operator.credit.${value}`),
          help: text(`operator.credit.${value}.help`),
        }))}
      />
      <Field
        label={text('wallet.amountUsd')}
        error={(isTried && !isAmount && text(isTopUp ? 'wallet.problem.amount' : 'operator.problem.amount')) || failures.of('amount')}
        isRequired
      >
        {(control) => (
          <Input {...control} inputMode={isTopUp ? 'decimal' : 'text'} value={typed} onChange={({ target }) => setTyped(target.value)} />
        )}
      </Field>
      <Field
        label={text('wallet.reference')}
        help={text('operator.referenceHelp')}
        error={(isTried && !isNamed && text('wallet.problem.reference')) || failures.of('reference')}
        isRequired
      >
        {(control) => <Input {...control} value={reference} onChange={({ target }) => setReference(target.value)} />}
      </Field>
    </form>
  )
}

function Name({ organization }: Pick<StepProps, 'organization'>) {
  return <UserText isWhole>{organization.name}</UserText>
}

function Suspend({ organization, onClose }: StepProps) {
  const text = useText()
  const [reason, setReason] = useState('')
  const [isTried, setTried] = useState(false)
  const suspend = useAction(SUSPEND)
  const isLong = [...reason.trim()].length > MAX_REFERENCE
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title={<Text id="operator.suspendTitle" values={{ name: <Name key="name" organization={organization} /> }} />}
      description={text('operator.suspendHelp')}
      action={text('operator.suspend')}
      isDangerous
      onConfirm={async () => {
        setTried(true)
        if (isLong) return false
        const done = await suspend.run({ input: { organizationId: organization.id, reason: reason.trim() || null } })
        if (done) toast(text('operator.suspended'))
        return done !== null
      }}
    >
      <div className="flex flex-col gap-4">
        <FailureNotice failure={suspend.failure} />
        <Field
          label={text('operator.reason')}
          help={text('operator.reasonHelp')}
          error={isTried && isLong && text('operator.problem.reason')}
        >
          {(control) => <Input {...control} value={reason} onChange={({ target }) => setReason(target.value)} />}
        </Field>
      </div>
    </ConfirmDialog>
  )
}

function Resume({ organization, onClose }: StepProps) {
  const text = useText()
  const resume = useAction(RESUME)
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title={<Text id="operator.resumeTitle" values={{ name: <Name key="name" organization={organization} /> }} />}
      description={text('operator.resumeHelp')}
      action={text('operator.resume')}
      onConfirm={async () => {
        const done = await resume.run({ id: organization.id })
        if (done) toast(text('operator.resumed'))
        return done !== null
      }}
    >
      <FailureNotice failure={resume.failure} />
    </ConfirmDialog>
  )
}

/** The name must be typed, so that nobody deletes the wrong one. */
function Delete({ organization, onClose }: StepProps) {
  const text = useText()
  const [typed, setTyped] = useState('')
  const [isTried, setTried] = useState(false)
  const remove = useAction(DELETE)
  const isSame = typed.trim() === organization.name.trim()
  return (
    <ConfirmDialog
      isOpen
      onClose={onClose}
      title={<Text id="operator.deleteTitle" values={{ name: <Name key="name" organization={organization} /> }} />}
      description={text('operator.deleteHelp')}
      action={text('operator.delete')}
      isDangerous
      onConfirm={async () => {
        setTried(true)
        if (!isSame) return false
        const done = await remove.run({ id: organization.id })
        if (done) toast(text('operator.deleted'))
        return done !== null
      }}
    >
      <div className="flex flex-col gap-4">
        <FailureNotice failure={remove.failure} />
        <Field label={text('operator.typeName')} error={isTried && !isSame && text('operator.problem.typeName')} isRequired>
          {(control) => <Input {...control} autoComplete="off" value={typed} onChange={({ target }) => setTyped(target.value)} />}
        </Field>
      </div>
    </ConfirmDialog>
  )
}
