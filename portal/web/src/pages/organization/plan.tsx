import { useScope } from '../../app/session.tsx'
import { useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { Money } from '../../parts/money.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Badge, Card, Progress, Skeleton } from '../../ui/surface.tsx'
import { type Organization, QUOTA } from './organization.ts'

/** Above this share of a quota it says so. */
const NEARLY_FULL = 0.8

/** The plan: how much of it is used, and its limits. */
export function Plan({ organization: { plan } }: { readonly organization: Organization }) {
  const text = useText()
  const { number, bytes } = useFormats()
  const canRead = useScope('KNOWLEDGE_READ')
  const quota = useQueryResult(QUOTA, {}, { pause: !canRead, types: ['Document'] })
  const count = (limit: number | null) => (limit === null ? text('organization.unlimited') : number(limit))
  return (
    <Card aria-labelledby="plan">
      <div className="mb-4 flex items-center gap-2">
        <h2 id="plan" className="text-base">
          {text('organization.plan')}
        </h2>
        <Badge tone="accent">
          <UserText>{plan.code}</UserText>
        </Badge>
      </div>
      {canRead && (
        <div className="mb-5 grid gap-4 sm:grid-cols-2">
          <WhenReady result={quota} loading={<Skeleton className="h-12 sm:col-span-2" />}>
            {({ organization }) =>
              organization?.quota ? (
                <>
                  <Bar label={text('organization.storage')} {...organization.quota.storageBytes} write={bytes} />
                  <Bar label={text('organization.vectors')} {...organization.quota.vectors} write={number} />
                  <Bar label={text('organization.ocrPages')} {...organization.ocrQuota} write={number} />
                </>
              ) : null
            }
          </WhenReady>
        </div>
      )}
      <FactList
        facts={[
          [text('organization.maxFile'), bytes(plan.maxFileBytes)],
          [text('organization.requestsPerMinute'), count(plan.requestsPerMinute)],
          [text('organization.tokensPerMinute'), count(plan.tokensPerMinute)],
          [text('organization.concurrency'), number(plan.concurrency)],
          [text('organization.ocrPagePrice'), <Money key="page" amount={plan.ocrPagePrice} />],
        ]}
      />
      <p className="mt-4 text-sm text-muted">{text('organization.planHelp')}</p>
    </Card>
  )
}

interface BarProps {
  readonly label: string
  readonly used: number
  readonly limit: number | null
  readonly write: (value: number) => string
}

function Bar({ label, used, limit, write }: BarProps) {
  const text = useText()
  const share = limit === null ? null : limit === 0 ? 1 : used / limit
  return (
    <div>
      <div className="mb-1.5 flex flex-wrap justify-between gap-x-3 text-sm">
        <span className="font-medium">{label}</span>
        <span className="text-muted tabular-nums">
          {limit === null
            ? text('organization.usedUnlimited', { used: write(used) })
            : text('organization.used', { used: write(used), limit: write(limit) })}
        </span>
      </div>
      {share !== null && (
        <Progress label={label} value={share} tone={share >= 1 ? 'danger' : share >= NEARLY_FULL ? 'warning' : 'accent'} />
      )}
      {share !== null && share >= NEARLY_FULL && (
        <p className="mt-1.5 text-sm text-warning-text">{text(share >= 1 ? 'organization.full' : 'organization.nearlyFull')}</p>
      )}
    </div>
  )
}
