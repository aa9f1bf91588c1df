import { useRepeat } from '../../data/calm.ts'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { StatusBadge } from '../../parts/badges.tsx'
import { FailureNotice } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Card, Skeleton } from '../../ui/surface.tsx'
import { HEALTH } from './operator.ts'

/** A part that does not answer sends no event either. */
const POLL_INTERVAL_MS = 10_000
const PARTS = ['billing', 'knowledge', 'inference'] as const

/** What each part of the service says of itself. */
export function Health() {
  return (
    <div className="grid gap-3 lg:grid-cols-3">
      {PARTS.map((part) => (
        <PartCard key={part} part={part} />
      ))}
    </div>
  )
}

function PartCard({ part }: { readonly part: (typeof PARTS)[number] }) {
  const text = useText()
  const result = useQueryResult(HEALTH[part], {})
  useRepeat(result, POLL_INTERVAL_MS)
  const health = result.state === 'ready' ? result.data.health : null
  return (
    <Card aria-label={text(`operator.part.${part}`)} aria-live="polite">
      <div className="flex items-start justify-between gap-3">
        <h2 className="text-base">{text(`operator.part.${part}`)}</h2>
        {result.state === 'loading' && <Skeleton className="w-16" />}
        {result.state === 'failed' && <StatusBadge tone="danger" label="operator.silent" />}
        {health && (
          <StatusBadge tone={health.isReady ? 'success' : 'danger'} label={health.isReady ? 'operator.ready' : 'operator.notReady'} />
        )}
      </div>
      <p className="mt-1 mb-3 text-sm text-muted">{text(`operator.part.${part}.help`)}</p>
      {result.state === 'failed' && <FailureNotice failure={result.failure} retry={result.retry} />}
      {health && health.problems.length > 0 && (
        <ul aria-label={text('operator.problems')} className="flex flex-col gap-1 text-sm text-danger-text">
          {health.problems.map((problem) => (
            <li key={problem}>
              <UserText isWhole>{problem}</UserText>
            </li>
          ))}
        </ul>
      )}
      {health?.isReady && health.problems.length === 0 && <p className="text-sm">{text('operator.noProblems')}</p>}
    </Card>
  )
}
