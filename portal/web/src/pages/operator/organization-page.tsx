import { getRouteApi, Link } from '@tanstack/react-router'
import { Ban, History, Play, SlidersHorizontal, Trash2, Wallet as WalletIcon } from 'lucide-react'
import { useState } from 'react'
import { useScope } from '../../app/session.tsx'
import { useQueryResult } from '../../data/query-result.ts'
import { Text, useFormats, useText } from '../../i18n/text.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { Money } from '../../parts/money.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { EmptyState, NotFound, WhenReady } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, harmless, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Badge, Card, Notice } from '../../ui/surface.tsx'
import { LimitValue } from './limit-value.tsx'
import { LIMITS } from './limits.ts'
import { CHANGES, ORGANIZATION, type Organization, type OrganizationChange, WALLET } from './operator.ts'
import { type Step, StepDialog } from './organization-dialogs.tsx'
import { OrganizationStatus } from './status.tsx'

const route = getRouteApi('/operator/organizations/$id')
export function OperatorOrganizationPage() {
  const { id } = route.useParams()
  const result = useQueryResult(ORGANIZATION, { id }, { types: ['Organization'] })
  return (
    <WhenReady result={result}>
      {({ organization }) => (organization ? <Opened key={id} organization={organization} /> : <NotFound />)}
    </WhenReady>
  )
}

function Opened({ organization }: { readonly organization: Organization }) {
  const text = useText()
  const [step, setStep] = useState<Step | null>(null)
  const { id, name, status } = organization
  const isGone = status === 'DELETING' || status === 'DELETED'
  return (
    <>
      <PageHeader
        title={harmless(name)}
        heading={
          <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <UserText isWhole>{name}</UserText>
            <OrganizationStatus status={status} />
          </span>
        }
        lead={
          <span className="inline-flex max-w-full items-center gap-1 text-sm">
            <Code>{id}</Code>
            <CopyButton value={id} label={text('operator.copyId')} />
          </span>
        }
        back={<Link to="/operator">{text('operator.tab.organizations')}</Link>}
        actions={
          !isGone && (
            <>
              {status === 'SUSPENDED' ? (
                <Button variant="primary" icon={Play} onClick={() => setStep('resume')}>
                  {text('operator.resume')}
                </Button>
              ) : (
                <Button icon={Ban} onClick={() => setStep('suspend')}>
                  {text('operator.suspend')}
                </Button>
              )}
              <Button icon={Trash2} onClick={() => setStep('delete')}>
                {text('common.delete')}
              </Button>
            </>
          )
        }
      />
      <Condition organization={organization} />
      <div className="mb-8 grid items-start gap-4 lg:grid-cols-2">
        <PlanCard organization={organization} onChange={isGone ? null : () => setStep('plan')} />
        <WalletCard id={id} onChange={isGone ? null : () => setStep('wallet')} />
      </div>
      <Changes id={id} />
      <StepDialog step={step} organization={organization} onClose={() => setStep(null)} />
    </>
  )
}

/** Why the organization does not work, if it does not. */
function Condition({ organization }: { readonly organization: Organization }) {
  const { status, suspendedAt, suspensionReason, deletedAt } = organization
  if (status === 'ACTIVE') return null
  return (
    <div className="mb-6">
      <Notice tone={status === 'SUSPENDED' ? 'warning' : 'neutral'}>
        <Text
          id={`operator.condition.${status}`}
          values={{ at: <DateTime key="at" at={status === 'SUSPENDED' ? suspendedAt : deletedAt} /> }}
        />
        {suspensionReason && (
          <p className="mt-0.5">
            <UserText isWhole>{suspensionReason}</UserText>
          </p>
        )}
      </Notice>
    </div>
  )
}

function PlanCard({ organization, onChange }: { readonly organization: Organization; readonly onChange: (() => void) | null }) {
  const text = useText()
  const { bytes } = useFormats()
  const { plan, limits, stored, residencyPolicy, createdAt } = organization
  return (
    <Card aria-label={text('operator.planAndLimits')}>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base">{text('operator.planAndLimits')}</h2>
        {onChange && (
          <Button size="small" icon={SlidersHorizontal} onClick={onChange}>
            {text('operator.changePlan')}
          </Button>
        )}
      </header>
      <FactList
        facts={[
          [text('operator.plan'), <Code key="plan">{plan.code}</Code>],
          [text('operator.policy'), text(`operator.policy.${residencyPolicy}`)],
          [text('operator.created'), <DateTime key="created" at={createdAt} style="date" />],
          [text('operator.stored'), stored && bytes(stored.storageBytes)],
          [text('operator.storedVectors'), stored && <Digits key="vectors" value={stored.vectors} />],
        ]}
      />
      <h3 className="mt-6 mb-2 text-sm">{text('operator.limits')}</h3>
      <FactList
        facts={LIMITS.map((limit) => [
          text(`operator.limit.${limit}`),
          <span key={limit} className="flex flex-wrap items-center gap-2">
            <LimitValue limit={limit} value={limits[limit] ?? plan[limit]} />
            {limits[limit] !== null && <Badge tone="info">{text('operator.ownLimit')}</Badge>}
          </span>,
        ])}
      />
    </Card>
  )
}

function WalletCard({ id, onChange }: { readonly id: string; readonly onChange: (() => void) | null }) {
  const text = useText()
  const mayRead = useScope('BILLING_READ')
  const result = useQueryResult(WALLET, { id }, { types: ['Wallet'], pause: !mayRead })
  return (
    <Card aria-label={text('operator.wallet')}>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-base">{text('operator.wallet')}</h2>
        {onChange && (
          <Button size="small" icon={WalletIcon} onClick={onChange}>
            {text('operator.credit')}
          </Button>
        )}
      </header>
      {mayRead ? (
        <WhenReady result={result}>
          {({ organization }) => (
            <FactList
              facts={(['available', 'balance', 'held'] as const).map((part) => [
                text(`wallet.${part}`),
                <Money key={part} amount={organization?.wallet[part]} rounding={part === 'held' ? 'up' : 'down'} />,
              ])}
            />
          )}
        </WhenReady>
      ) : (
        <p className="text-sm text-muted">{text('operator.walletHidden')}</p>
      )}
    </Card>
  )
}

function Changes({ id }: { readonly id: string }) {
  const text = useText()
  const paging = usePaging(id)
  const result = useQueryResult(CHANGES, { id, ...paging.variables }, { types: ['Organization'] })
  const columns: readonly Column<OrganizationChange>[] = [
    { id: 'kind', header: text('operator.change'), cell: ({ kind }) => text(`operator.change.${kind}`) },
    { id: 'plan', header: text('operator.plan'), cell: ({ plan }) => <Code className="font-sans">{plan}</Code>, shown: 'wide' },
    {
      id: 'reason',
      header: text('operator.reason'),
      cell: ({ reason }) => (reason ? <UserText className="max-w-72">{reason}</UserText> : <span aria-hidden>—</span>),
      shown: 'wide',
    },
    { id: 'by', header: text('operator.byKey'), cell: ({ apiKeyId }) => <Code className="max-w-40">{apiKeyId}</Code>, shown: 'wide' },
    { id: 'at', header: text('operator.at'), cell: ({ at }) => <DateTime at={at} /> },
  ]
  return (
    <section>
      <h2 className="mb-3 text-lg">{text('operator.changes')}</h2>
      <DataTable
        label={text('operator.changes')}
        result={result}
        page={({ organization }) => organization?.changes ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={History} title={text('operator.changesNone')}>
            {text('operator.changesNoneHelp')}
          </EmptyState>
        }
      />
    </section>
  )
}
