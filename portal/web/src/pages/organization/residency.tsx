import { Ban, Check } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useScope } from '../../app/session.tsx'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { ResidencyBadge } from '../../parts/badges.tsx'
import { FailureNotice, WhenReady } from '../../parts/states.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { RadioGroup } from '../../ui/choices.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Card, Notice } from '../../ui/surface.tsx'
import { toast } from '../../ui/toast.tsx'
import { type Stopped, type Stops, whatStops } from './effects.ts'
import { AGENTS, COLLECTIONS, EFFECTS, type Effects, type Organization, UPDATE } from './organization.ts'
import { useAll } from './use-all.ts'

const POLICIES = ['UNRESTRICTED', 'REGIONAL', 'LOCAL_ONLY'] as const
type Policy = (typeof POLICIES)[number]

/** Where data may be processed; who may change it sees what the change would stop, before it is made. */
export function Residency({ organization: { residencyPolicy } }: { readonly organization: Organization }) {
  const text = useText()
  const isAdmin = useScope('ADMIN')
  return (
    <Card aria-labelledby="residency">
      <h2 id="residency" className="text-base">
        {text('organization.residency')}
      </h2>
      <p className="mt-1 mb-4 text-sm text-muted">{text('organization.residencyHelp')}</p>
      {isAdmin ? (
        <PolicyForm key={residencyPolicy} current={residencyPolicy} />
      ) : (
        <p className="text-sm">
          <span className="font-medium">{text(`organization.policy.${residencyPolicy}`)}</span>{' '}
          <span className="text-muted">{text(`organization.policy.${residencyPolicy}.help`)}</span>
        </p>
      )}
    </Card>
  )
}

function PolicyForm({ current }: { readonly current: Policy }) {
  const text = useText()
  const [policy, setPolicy] = useState<Policy>(current)
  const [isConfirming, setConfirming] = useState(false)
  const save = useAction(UPDATE)
  const effects = useQueryResult(EFFECTS, { policy }, { types: ['Model'] })
  const collections = useAll(COLLECTIONS, ({ collections }) => collections)
  const agents = useAll(AGENTS, ({ agents }) => agents)
  const isKnown = collections.state === 'ready' && agents.state === 'ready'
  const stops = (residencies: Effects['residencies']) => (isKnown ? whatStops(residencies, collections.data, agents.data) : null)
  const of = (policy: Policy) =>
    effects.state === 'ready' && effects.data.residencyEffects.policy === policy ? effects.data.residencyEffects : null
  const chosen = of(policy)

  return (
    <>
      <RadioGroup
        label={text('organization.residency')}
        value={policy}
        onChange={setPolicy}
        options={POLICIES.map((value) => ({
          value,
          label: (
            <>
              {/* Without a space, the last Arabic letter would join the first of the next word. */}
              {text(`organization.policy.${value}`)}{' '}
              {value === current && <span className="ms-1 text-xs text-muted">{text('organization.inForce')}</span>}
            </>
          ),
          help: text(`organization.policy.${value}.help`),
        }))}
      />
      <div className="mt-5 rounded-lg border bg-sunken p-4" role="status">
        <WhenReady result={effects}>
          {() =>
            chosen ? (
              <>
                <ModelEffects effects={chosen} />
                <OwnEffects
                  stops={stops(chosen.residencies)}
                  isFuture={policy !== current}
                  isAll={isKnown && collections.isAll && agents.isAll}
                />
              </>
            ) : null
          }
        </WhenReady>
      </div>
      {save.failure && (
        <div className="mt-3">
          <FailureNotice failure={save.failure} />
        </div>
      )}
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        {policy !== current && <Button onClick={() => setPolicy(current)}>{text('common.cancel')}</Button>}
        <Button variant="primary" disabled={policy === current || !chosen || !isKnown} onClick={() => setConfirming(true)}>
          {text('organization.changePolicy')}
        </Button>
      </div>
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        title={text('organization.policyTitle', { policy: text(`organization.policy.${policy}`) })}
        description={text(
          POLICIES.indexOf(policy) > POLICIES.indexOf(current) ? 'organization.policyStricter' : 'organization.policyLooser',
        )}
        action={text('organization.changePolicy')}
        isDangerous={isKnown && chosen !== null && countOf(stops(chosen.residencies)) > 0}
        onConfirm={async () => {
          const saved = await save.run({ input: { residencyPolicy: policy } })
          if (saved) toast(text('organization.policySaved'))
          return true
        }}
      >
        {chosen && <OwnEffects stops={stops(chosen.residencies)} isFuture isAll={isKnown && collections.isAll && agents.isAll} />}
      </ConfirmDialog>
    </>
  )
}

function countOf(stops: Stops | null): number {
  return stops ? stops.collections.length + stops.weakened.length + stops.agents.length : 0
}

/** How many models of each kind stay, and which may not be called. */
function ModelEffects({ effects: { permittedModels, forbiddenModels } }: { readonly effects: Effects }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <section>
      <h3 className="text-sm font-medium">
        {text('organization.models', {
          permitted: number(permittedModels.length),
          forbidden: number(forbiddenModels.length),
          count: forbiddenModels.length,
        })}
      </h3>
      {forbiddenModels.length > 0 && (
        <ul aria-label={text('organization.forbiddenModels')} className="mt-2 flex max-h-56 flex-col gap-1.5 overflow-y-auto">
          {forbiddenModels.map(({ id, kind, residency }) => (
            <li key={id} className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
              <Ban className="size-4 shrink-0 text-danger-text" aria-hidden />
              <Code className="max-w-52">{id}</Code>
              <span className="text-xs text-muted">{text(`models.kind.${kind}`)}</span>
              <ResidencyBadge residency={residency} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

interface OwnEffectsProps {
  /** Null: it is being asked for. */
  readonly stops: Stops | null
  /** The policy is not in force yet. */
  readonly isFuture: boolean
  /** All collections and agents were looked at. */
  readonly isAll: boolean
}

/** What of the organization's own would stop. */
function OwnEffects({ stops, isFuture, isAll }: OwnEffectsProps) {
  const text = useText()
  if (!stops) return <p className="mt-3 text-sm text-muted">{text('common.loading')}</p>
  return (
    <div className="mt-4 flex flex-col gap-3">
      {countOf(stops) === 0 ? (
        <p className="flex items-center gap-2 text-sm text-success-text">
          <Check className="size-4 shrink-0" aria-hidden />
          {text(isFuture ? 'organization.nothingStops' : 'organization.nothingStopped')}
        </p>
      ) : (
        <>
          <StoppedList title={text('organization.stops.collections', { count: stops.collections.length })} stopped={stops.collections} />
          <StoppedList title={text('organization.stops.weakened', { count: stops.weakened.length })} stopped={stops.weakened} />
          <StoppedList title={text('organization.stops.agents', { count: stops.agents.length })} stopped={stops.agents} />
        </>
      )}
      {!isAll && <Notice tone="warning">{text('organization.notAll')}</Notice>}
    </div>
  )
}

function StoppedList({ title, stopped }: { readonly title: ReactNode; readonly stopped: readonly Stopped[] }) {
  if (stopped.length === 0) return null
  return (
    <section>
      <h3 className="text-sm font-medium text-danger-text">{title}</h3>
      <ul className="mt-1.5 flex max-h-40 flex-col gap-1 overflow-y-auto text-sm">
        {stopped.map(({ id, name, models }) => (
          <li key={id} className="flex flex-wrap items-baseline gap-x-2">
            <UserText className="max-w-60">{name}</UserText>
            {models.map((model) => (
              <Code key={model} className="max-w-52 text-muted">
                {model}
              </Code>
            ))}
          </li>
        ))}
      </ul>
    </section>
  )
}
