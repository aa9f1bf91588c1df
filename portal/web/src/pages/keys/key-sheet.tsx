import { Ban, Pencil, RotateCw } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { Money } from '../../parts/money.tsx'
import type { Secret } from '../../parts/secret-dialog.tsx'
import { FailureNotice, NotFound, WhenReady } from '../../parts/states.tsx'
import { DateTime, RelativeTime } from '../../parts/time.tsx'
import { Code, harmless, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog, Sheet } from '../../ui/dialog.tsx'
import { Badge, Progress } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { draftOf, inputOf } from './draft.ts'
import { KeyForm } from './key-form.tsx'
import { KeyState } from './key-state.tsx'
import { KEY, type Key, REVOKE, ROTATE, stateOf, UPDATE } from './keys.ts'

interface KeySheetProps {
  /** Null: none is open. */
  readonly id: string | null
  readonly onClose: () => void
  readonly onSecret: (secret: Secret) => void
}

/** All of one key, and what can be done with it. */
export function KeySheet({ id, onClose, onSecret }: KeySheetProps) {
  const text = useText()
  const result = useQueryResult(KEY, { id: id ?? '' }, { pause: id === null })
  const name = result.state === 'ready' ? result.data.apiKey?.name : undefined
  return (
    <Sheet isOpen={id !== null} onClose={onClose} title={name ? <UserText isWhole>{name}</UserText> : text('keys.key')}>
      {id !== null && (
        <WhenReady result={result}>{({ apiKey }) => (apiKey ? <Details apiKey={apiKey} onSecret={onSecret} /> : <NotFound />)}</WhenReady>
      )}
    </Sheet>
  )
}

function Details({ apiKey, onSecret }: { readonly apiKey: Key } & Pick<KeySheetProps, 'onSecret'>) {
  const text = useText()
  const { id, last4, scopes, modelAllowlist, requestsPerMinute, tokensPerMinute, spendLimit, spent } = apiKey
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text('keys.state'), <KeyState key="state" apiKey={apiKey} />],
    [text('keys.id'), <Code key="id">{id}</Code>],
    [text('keys.last4'), <Code key="last4">{`…${last4}`}</Code>],
    [
      text('keys.scopes'),
      <span key="scopes" className="flex flex-wrap gap-1">
        {scopes.map((scope) => (
          <Badge key={scope}>{text(`keys.scope.${scope}`)}</Badge>
        ))}
      </span>,
    ],
    [
      text('keys.models'),
      modelAllowlist ? (
        <span key="models" className="flex flex-wrap gap-1">
          {modelAllowlist.map((model) => (
            <Badge key={model}>
              <Code className="font-sans">{model}</Code>
            </Badge>
          ))}
        </span>
      ) : (
        text('keys.everyModel')
      ),
    ],
    [text('keys.requestsPerMinute'), requestsPerMinute === null ? text('keys.asPlan') : <Digits key="rpm" value={requestsPerMinute} />],
    [text('keys.tokensPerMinute'), tokensPerMinute === null ? text('keys.asPlan') : <Digits key="tpm" value={tokensPerMinute} />],
    [text('keys.lastUsed'), apiKey.lastUsedAt ? <RelativeTime key="used" at={apiKey.lastUsedAt} /> : text('keys.never')],
    [text('keys.expires'), apiKey.expiresAt ? <DateTime key="expires" at={apiKey.expiresAt} /> : text('keys.neverExpires')],
    [text('keys.created'), <DateTime key="created" at={apiKey.createdAt} />],
  ]
  return (
    <div className="flex flex-col gap-6">
      <Actions apiKey={apiKey} onSecret={onSecret} />
      <FactList facts={facts} />
      {spent && (
        <section>
          <h3 className="mb-2 text-sm">{text('keys.spent')}</h3>
          <dl className="grid grid-cols-3 gap-3">
            {(['today', 'thisMonth', 'total'] as const).map((period) => (
              <div key={period} className="rounded-lg border p-3">
                <dt className="text-xs text-muted">{text(`keys.spent.${period}`)}</dt>
                <dd className="mt-1 font-medium">
                  <Money amount={spent[period]} rounding="up" />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {spendLimit && <Limit limit={spendLimit} />}
    </div>
  )
}

function Limit({ limit }: { readonly limit: NonNullable<Key['spendLimit']> }) {
  const text = useText()
  // A share for a bar needs no exact money.
  const used = (Number(limit.spent) + Number(limit.held)) / (Number(limit.amount) || 1)
  return (
    <section>
      <div className="mb-2 flex flex-wrap items-baseline justify-between gap-2 text-sm">
        <h3 className="text-sm">{text('keys.limitOf', { period: text(`keys.period.${limit.period}`) })}</h3>
        <span className="text-muted">
          <Money amount={limit.spent} rounding="up" /> / <Money amount={limit.amount} rounding="down" />
        </span>
      </div>
      <Progress label={text('keys.spendLimit')} value={used} tone={used >= 1 ? 'danger' : used >= 0.8 ? 'warning' : 'accent'} />
      {limit.resetsAt && (
        <p className="mt-1.5 text-xs text-muted">
          {text('keys.resets')} <DateTime at={limit.resetsAt} />
        </p>
      )}
    </section>
  )
}

type Step = 'edit' | 'rotate' | 'revoke'

function Actions({ apiKey, onSecret }: { readonly apiKey: Key } & Pick<KeySheetProps, 'onSecret'>) {
  const text = useText()
  const [step, setStep] = useState<Step | null>(null)
  const update = useAction(UPDATE)
  const rotate = useAction(ROTATE)
  const revoke = useAction(REVOKE)
  const { id, name } = apiKey
  if (stateOf(apiKey) === 'revoked') return null
  const close = () => setStep(null)
  return (
    <div className="flex flex-wrap gap-2">
      <Button icon={Pencil} onClick={() => setStep('edit')}>
        {text('common.edit')}
      </Button>
      <Button icon={RotateCw} onClick={() => setStep('rotate')}>
        {text('keys.rotate')}
      </Button>
      <Button icon={Ban} onClick={() => setStep('revoke')}>
        {text('keys.revoke')}
      </Button>
      <KeyForm
        isOpen={step === 'edit'}
        onClose={() => {
          update.reset()
          close()
        }}
        title={text('keys.edit')}
        action={text('common.save')}
        start={draftOf(apiKey)}
        isBusy={update.isRunning}
        failure={update.failure}
        onSubmit={async (draft) => {
          if (!(await update.run({ input: { id, ...inputOf(draft) } }))) return
          toast(text('keys.saved'))
          close()
        }}
      />
      <ConfirmDialog
        isOpen={step === 'rotate'}
        onClose={close}
        title={text('keys.rotateTitle', { name: harmless(name) })}
        description={text('keys.rotateHelp')}
        action={text('keys.rotate')}
        onConfirm={async () => {
          const rotated = await rotate.run({ id })
          if (!rotated?.rotateApiKey) return false
          onSecret({ name, secret: rotated.rotateApiKey.key })
          return true
        }}
      >
        <FailureNotice failure={rotate.failure} />
      </ConfirmDialog>
      <ConfirmDialog
        isOpen={step === 'revoke'}
        onClose={close}
        title={text('keys.revokeTitle', { name: harmless(name) })}
        description={text('keys.revokeHelp')}
        action={text('keys.revoke')}
        isDangerous
        onConfirm={async () => {
          if (!(await revoke.run({ id }))) return false
          toast(text('keys.revoked'))
          return true
        }}
      >
        <FailureNotice failure={revoke.failure} />
      </ConfirmDialog>
    </div>
  )
}
