import { Link } from '@tanstack/react-router'
import { Bot, Workflow } from 'lucide-react'
import { useText } from '../../i18n/text.tsx'
import { StatusBadge } from '../../parts/badges.tsx'
import { Money } from '../../parts/money.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Card } from '../../ui/surface.tsx'
import type { Run } from './overview.ts'

const TONES = { RUNNING: 'info', COMPLETED: 'success', FAILED: 'danger', CANCELLED: 'neutral' } as const

/** The newest runs of agents and workflows. */
export function Runs({ runs }: { readonly runs: readonly Run[] }) {
  const text = useText()
  return (
    <Card aria-labelledby="runs">
      <h2 id="runs" className="mb-3 text-base">
        {text('home.runs')}
      </h2>
      {runs.length === 0 ? (
        <p className="text-sm text-muted">{text('home.runsNone')}</p>
      ) : (
        <ul className="flex flex-col divide-y">
          {runs.map((run) => (
            <Entry key={run.id} run={run} />
          ))}
        </ul>
      )}
    </Card>
  )
}

function Entry({ run: { id, kind, ofId, name, status, startedAt, cost } }: { readonly run: Run }) {
  const text = useText()
  const Icon = kind === 'agent' ? Bot : Workflow
  const target =
    kind === 'agent' ? { to: `/agents/${ofId}`, search: { tab: 'runs', run: id } } : { to: `/workflows/${ofId}/runs/${id}`, search: {} }
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2.5 first:pt-0 last:pb-0">
      <Icon className="size-4 shrink-0 text-muted" aria-hidden />
      <div className="min-w-0 grow basis-40">
        {name === null ? (
          <span className="text-sm text-muted">{text(`home.deleted.${kind}`)}</span>
        ) : (
          <Link {...(target as { to: '/agents' })} className="block text-sm font-medium underline-offset-4 hover:underline">
            <UserText>{name}</UserText>
          </Link>
        )}
        <span className="flex gap-2 text-xs text-muted">
          <RelativeTime at={startedAt} />
          {cost !== null && <Money amount={cost} rounding="up" />}
        </span>
      </div>
      <StatusBadge tone={TONES[status]} label={`home.run.${status}`} isActive={status === 'RUNNING'} />
    </li>
  )
}
