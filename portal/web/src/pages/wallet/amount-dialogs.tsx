import { type FormEvent, useState } from 'react'
import { useAction } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { toAmount } from '../../parts/typed-number.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input } from '../../ui/input.tsx'
import { toast } from '../../ui/toast.tsx'
import { SET_THRESHOLD, TOP_UP } from './wallet.ts'

const MAX_REFERENCE = 100

interface AmountDialogProps {
  readonly step: 'threshold' | 'top-up' | null
  readonly onClose: () => void
  readonly organizationId: string
  readonly threshold: string | null
}

/** The dialogs of the wallet that take an amount. */
export function AmountDialog({ step, onClose, organizationId, threshold }: AmountDialogProps) {
  const text = useText()
  const [isBusy, setBusy] = useState(false)
  const isTopUp = step === 'top-up'
  const form = { onClose, onBusy: setBusy }
  return (
    <Dialog
      isOpen={step !== null}
      onClose={onClose}
      size="small"
      title={text(isTopUp ? 'wallet.topUp' : 'wallet.threshold')}
      description={text(isTopUp ? 'wallet.topUpHelp' : 'wallet.thresholdHelp')}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="amount-form" isBusy={isBusy}>
            {text(isTopUp ? 'wallet.topUp' : 'common.save')}
          </Button>
        </>
      }
    >
      {isTopUp ? <TopUp organizationId={organizationId} {...form} /> : <Threshold threshold={threshold} {...form} />}
    </Dialog>
  )
}

interface FormProps {
  readonly onClose: () => void
  readonly onBusy: (isBusy: boolean) => void
}

function Threshold({ threshold, onClose, onBusy }: FormProps & { readonly threshold: string | null }) {
  const text = useText()
  const [typed, setTyped] = useState(threshold ?? '')
  const [isTried, setTried] = useState(false)
  const set = useAction(SET_THRESHOLD)
  const isGood = typed.trim() === '' || isAbove0(typed)
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isGood) return
    onBusy(true)
    const saved = await set.run({ input: { lowBalanceThreshold: typed.trim() === '' ? null : toAmount(typed) } })
    onBusy(false)
    if (!saved) return
    toast(text('wallet.thresholdSaved'))
    onClose()
  }
  return (
    <form id="amount-form" noValidate onSubmit={submit} className="flex flex-col gap-4">
      <FailureNotice failure={set.failure} />
      <Field
        label={text('wallet.amountUsd')}
        help={text('wallet.thresholdNone')}
        error={isTried && !isGood && text('wallet.problem.amount')}
      >
        {(control) => <Input {...control} inputMode="decimal" value={typed} onChange={({ target }) => setTyped(target.value)} />}
      </Field>
    </form>
  )
}

function TopUp({ organizationId, onClose, onBusy }: FormProps & { readonly organizationId: string }) {
  const text = useText()
  const [typed, setTyped] = useState('')
  const [reference, setReference] = useState('')
  const [isTried, setTried] = useState(false)
  const topUp = useAction(TOP_UP)
  const length = [...reference.trim()].length
  const isNamed = length > 0 && length <= MAX_REFERENCE
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    const amount = toAmount(typed)
    if (!isAbove0(typed) || !isNamed || amount === null) return
    onBusy(true)
    const done = await topUp.run({ input: { organizationId, amount, reference: reference.trim() } })
    onBusy(false)
    if (!done) return
    toast(text('wallet.toppedUp'))
    onClose()
  }
  return (
    <form id="amount-form" noValidate onSubmit={submit} className="flex flex-col gap-4">
      <FailureNotice failure={topUp.failure} />
      <Field label={text('wallet.amountUsd')} error={isTried && !isAbove0(typed) && text('wallet.problem.amount')} isRequired>
        {(control) => <Input {...control} inputMode="decimal" value={typed} onChange={({ target }) => setTyped(target.value)} />}
      </Field>
      <Field
        label={text('wallet.reference')}
        help={text('wallet.referenceHelp')}
        error={isTried && !isNamed && text('wallet.problem.reference')}
        isRequired
      >
        {(control) => <Input {...control} value={reference} onChange={({ target }) => setReference(target.value)} />}
      </Field>
    </form>
  )
}

function isAbove0(typed: string): boolean {
  return Number(toAmount(typed) ?? 0) > 0
}
