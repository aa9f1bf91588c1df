import { Link } from '@tanstack/react-router'
import { useScope } from '../../app/session.tsx'
import { useCalm } from '../../data/calm.ts'
import { type QueryResult, useEvents, useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { Money, useMoney } from '../../parts/money.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { useTime } from '../../parts/time.tsx'
import { Card, Notice } from '../../ui/surface.tsx'
import { Tooltip } from '../../ui/tooltip.tsx'
import { SPEND, type Spend, WALLET_CHANGED } from './home.ts'
import { type Day, lastDays, weekBefore } from './overview.ts'

/** Under load the wallet changes many times a second. */
const PAUSE_MS = 2_000

interface Spending {
  readonly result: QueryResult<Spend>
  readonly now: Date
}

export function useSpending(pause: boolean): Spending {
  const now = new Date()
  const result = useQueryResult(SPEND, { since: weekBefore(now).toISOString() }, { pause, types: ['Wallet', 'UsageRecord'] })
  const refresh = useCalm(() => result.state === 'ready' && result.refresh(), PAUSE_MS)
  useEvents(WALLET_CHANGED, {}, refresh, { pause })
  return { result, now }
}

/** What today has cost, and what is left. */
export function Spending({ result, now }: Spending) {
  return <WhenReady result={result}>{(data) => <Amounts spend={data} days={lastDays(data, now)} />}</WhenReady>
}

function Amounts({ spend: { organization }, days }: { readonly spend: Spend; readonly days: readonly Day[] }) {
  const text = useText()
  const { number } = useFormats()
  const isOperator = useScope('OPERATOR')
  const today = days.at(-1)!
  return (
    <>
      <Card aria-labelledby="spend">
        <div className="flex items-baseline justify-between gap-3">
          <h2 id="spend" className="text-sm font-normal text-muted">
            {text('home.today')}
          </h2>
          <Link to="/usage" className="text-sm text-accent-text underline-offset-4 hover:underline">
            {text('usage.title')}
          </Link>
        </div>
        <p className="mt-1 text-2xl font-semibold">
          <Money amount={today.amount} rounding="up" />
        </p>
        <p className="mt-0.5 text-xs text-muted">{text('home.calls', { count: today.calls, shown: number(today.calls) })}</p>
        <Week days={days} />
      </Card>
      {organization && (
        <Card aria-labelledby="balance">
          <div className="flex items-baseline justify-between gap-3">
            <h2 id="balance" className="text-sm font-normal text-muted">
              {text('home.available')}
            </h2>
            <Link to="/wallet" className="text-sm text-accent-text underline-offset-4 hover:underline">
              {text('wallet.title')}
            </Link>
          </div>
          <p className="mt-1 text-2xl font-semibold">
            <Money amount={organization.wallet.available} rounding="down" />
          </p>
          <p className="mt-0.5 text-xs text-muted">{text('wallet.available.help')}</p>
          {isLow(organization) && (
            <div className="mt-3">
              <Notice tone="warning">{text(isOperator ? 'home.lowTopUp' : 'wallet.low')}</Notice>
            </div>
          )}
        </Card>
      )}
    </>
  )
}

function isLow({ lowBalanceThreshold, wallet }: NonNullable<Spend['organization']>): boolean {
  return Number(wallet.available) <= 0 || (lowBalanceThreshold !== null && Number(wallet.balance) < Number(lowBalanceThreshold))
}

/** Seven days as bars. A screen reader reads them as a list. */
function Week({ days }: { readonly days: readonly Day[] }) {
  const text = useText()
  const time = useTime()
  const money = useMoney()
  return (
    <ul aria-label={text('home.week')} className="mt-4 flex h-14 items-end gap-1.5">
      {days.map(({ day, amount, share }, index) => {
        const label = text('home.day', { day: time(`${day}T12:00:00Z`, 'date'), amount: money(amount, 'up') })
        return (
          <li key={day} className="flex h-full min-w-0 grow items-end">
            <Tooltip label={label}>
              <span className="flex h-full w-full items-end rounded-sm hover:bg-hover">
                <span className="sr-only">{label}</span>
                <span
                  aria-hidden
                  className={`w-full rounded-sm ${index === days.length - 1 ? 'bg-accent' : 'bg-line-strong/50'}`}
                  style={{ height: `${Math.max(share * 100, 4)}%` }}
                />
              </span>
            </Tooltip>
          </li>
        )
      })}
    </ul>
  )
}
