import { BellRing, Plus, ReceiptText } from 'lucide-react'
import { useState } from 'react'
import { useScope } from '../../app/session.tsx'
import { useCalm } from '../../data/calm.ts'
import { useEvents, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, RowsTable, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { Money } from '../../parts/money.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { DateTime, RelativeTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Notice } from '../../ui/surface.tsx'
import { AmountDialog } from './amount-dialogs.tsx'
import { CHANGED, type Entry, type Hold, WALLET, type Wallet } from './wallet.ts'

/** Under load the wallet changes many times a second. */
const LEAST_PAUSE_MS = 2_000

type Step = 'threshold' | 'top-up'

export function WalletPage() {
  const text = useText()
  const isAdmin = useScope('ADMIN')
  const isOperator = useScope('OPERATOR')
  const [step, setStep] = useState<Step | null>(null)
  const paging = usePaging()
  const result = useQueryResult(WALLET, paging.variables, { types: ['Wallet', 'LedgerEntry'] })
  const refresh = useCalm(() => result.state === 'ready' && result.refresh(), LEAST_PAUSE_MS)
  useEvents(CHANGED, {}, refresh)
  const entryColumns = useEntryColumns()
  const organization = result.state === 'ready' ? result.data.organization : null
  return (
    <>
      <PageHeader
        title={text('wallet.title')}
        lead={text('wallet.lead')}
        actions={
          organization && (
            <>
              {isAdmin && (
                <Button icon={BellRing} onClick={() => setStep('threshold')}>
                  {text('wallet.threshold')}
                </Button>
              )}
              {isOperator && (
                <Button variant="primary" icon={Plus} onClick={() => setStep('top-up')}>
                  {text('wallet.topUp')}
                </Button>
              )}
            </>
          )
        }
      />
      {organization && (
        <>
          <Balance wallet={organization.wallet} threshold={organization.lowBalanceThreshold} />
          {organization.wallet.holds.length > 0 && <Holds holds={organization.wallet.holds} />}
          <AmountDialog
            step={step}
            onClose={() => setStep(null)}
            organizationId={organization.id}
            threshold={organization.lowBalanceThreshold}
          />
        </>
      )}
      <h2 className="mb-3 text-lg">{text('wallet.ledger')}</h2>
      <DataTable
        label={text('wallet.ledger')}
        result={result}
        page={({ organization }) => organization?.wallet.entries ?? EMPTY_PAGE}
        paging={paging}
        columns={entryColumns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={ReceiptText} title={text('wallet.none')}>
            {text('wallet.noneHelp')}
          </EmptyState>
        }
      />
    </>
  )
}

function Balance({ wallet, threshold }: { readonly wallet: Wallet; readonly threshold: string | null }) {
  const text = useText()
  const isLow = threshold !== null && Number(wallet.balance) < Number(threshold)
  return (
    <section className="mb-8">
      <dl className="grid gap-3 sm:grid-cols-3">
        {(['available', 'balance', 'held'] as const).map((part) => (
          <Card as="div" key={part}>
            <dt className="text-sm text-muted">{text(`wallet.${part}`)}</dt>
            <dd className="mt-1 text-2xl font-semibold">
              <Money amount={wallet[part]} rounding={part === 'held' ? 'up' : 'down'} />
            </dd>
            <dd className="mt-1 text-xs text-muted">{text(`wallet.${part}.help`)}</dd>
          </Card>
        ))}
      </dl>
      {isLow && (
        <div className="mt-3">
          <Notice tone="warning">{text('wallet.low')}</Notice>
        </div>
      )}
    </section>
  )
}

function Holds({ holds }: { readonly holds: readonly Hold[] }) {
  const text = useText()
  const columns: readonly Column<Hold>[] = [
    {
      id: 'operation',
      header: text('wallet.holdFor'),
      cell: ({ operation }) => (operation ? text(`usage.operation.${operation}`) : text('wallet.run')),
    },
    {
      id: 'model',
      header: text('wallet.model'),
      cell: ({ model }) => model && <Code className="font-sans">{model.id}</Code>,
      shown: 'wide',
    },
    {
      id: 'key',
      header: text('wallet.key'),
      cell: ({ apiKey }) => apiKey && <UserText className="max-w-40">{apiKey.name}</UserText>,
      shown: 'wide',
    },
    { id: 'expires', header: text('wallet.expires'), cell: ({ expiresAt }) => <RelativeTime at={expiresAt} /> },
    { id: 'amount', header: text('wallet.amount'), cell: ({ amount }) => <Money amount={amount} />, isNumber: true },
  ]
  return (
    <section className="mb-8">
      <h2 className="mb-3 text-lg">{text('wallet.holds')}</h2>
      <RowsTable label={text('wallet.holds')} columns={columns} rows={holds} rowId={({ id }) => id} />
    </section>
  )
}

const TONES = { TOP_UP: 'success', ADJUSTMENT: 'info', HOLD: 'neutral', SETTLE: 'accent', VOID: 'neutral', EXPIRE: 'warning' } as const

function useEntryColumns(): readonly Column<Entry>[] {
  const text = useText()
  return [
    {
      id: 'at',
      header: text('wallet.at'),
      cell: ({ at, sequence }) => (
        <>
          <DateTime at={at} />
          <div className="text-xs text-muted">
            <Digits value={sequence} />
          </div>
        </>
      ),
    },
    { id: 'kind', header: text('wallet.kind'), cell: ({ kind }) => <Badge tone={TONES[kind]}>{text(`wallet.kind.${kind}`)}</Badge> },
    {
      id: 'reference',
      header: text('wallet.reference'),
      cell: ({ reference }) => <UserText className="max-w-52">{reference}</UserText>,
      shown: 'wide',
    },
    { id: 'amount', header: text('wallet.amount'), cell: ({ amount }) => <Money amount={amount} />, isNumber: true },
    { id: 'held', header: text('wallet.heldChange'), cell: ({ held }) => <Money amount={held} />, isNumber: true, shown: 'wide' },
    { id: 'balance', header: text('wallet.balance'), cell: ({ balance }) => <Money amount={balance} />, isNumber: true, shown: 'wide' },
  ]
}
