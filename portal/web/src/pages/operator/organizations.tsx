import { getRouteApi, Link } from '@tanstack/react-router'
import { Building2, Plus, SearchX } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { type Column, DataTable, usePaging } from '../../parts/data-table.tsx'
import { useFieldFailures } from '../../parts/field-failure.tsx'
import { SearchBox } from '../../parts/search-box.tsx'
import { type Secret, SecretDialog } from '../../parts/secret-dialog.tsx'
import { EmptyState, FailureNotice } from '../../parts/states.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { Input, Select } from '../../ui/input.tsx'
import { type Filters, STATUSES } from './filters.ts'
import { CREATE, ORGANIZATIONS, type OrganizationRow, PLANS } from './operator.ts'
import { OrganizationStatus } from './status.tsx'

const route = getRouteApi('/operator')
const MAX_NAME = 100
const POLICIES = ['UNRESTRICTED', 'REGIONAL', 'LOCAL_ONLY'] as const

/** All organizations of the service. */
export function Organizations() {
  const text = useText()
  const { q, status, plan } = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: Filters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<Secret | null>(null)
  const plans = usePlanCodes()
  const columns = useColumns()

  const filter = { name: q ?? null, status: status ?? null, plan: plan ?? null }
  const paging = usePaging(JSON.stringify(filter))
  const result = useQueryResult(ORGANIZATIONS, { ...paging.variables, filter }, { types: ['Organization'] })
  const isFiltered = q !== undefined || status !== undefined || plan !== undefined
  return (
    <>
      <div className="mb-4 flex flex-wrap gap-2">
        <search className="grid grow basis-72 gap-2 sm:grid-cols-[minmax(0,2fr)_minmax(0,1fr)_minmax(0,1fr)]">
          <SearchBox label={text('operator.search')} value={q ?? ''} onChange={(typed) => change({ q: typed || undefined })} />
          <Select
            aria-label={text('operator.status')}
            value={status ?? ''}
            onChange={(value) => change({ status: value || undefined })}
            options={[
              { value: '', label: text('operator.allStatuses') },
              ...STATUSES.map((value) => ({ value, label: text(`operator.status.${value}`) })),
            ]}
          />
          <Select
            aria-label={text('operator.plan')}
            value={plan ?? ''}
            onChange={(value) => change({ plan: value || undefined })}
            options={[{ value: '', label: text('operator.allPlans') }, ...plans.map((value) => ({ value, label: value }))]}
          />
        </search>
        <Button variant="primary" icon={Plus} onClick={() => setCreating(true)}>
          {text('operator.create')}
        </Button>
      </div>
      <DataTable
        label={text('operator.tab.organizations')}
        result={result}
        page={({ organizations }) => organizations}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          isFiltered ? (
            <EmptyState
              icon={SearchX}
              title={text('common.nothingMatches')}
              actions={
                <Button onClick={() => change({ q: undefined, status: undefined, plan: undefined })}>
                  {text('operator.clearFilters')}
                </Button>
              }
            />
          ) : (
            <EmptyState icon={Building2} title={text('operator.none')}>
              {text('operator.noneHelp')}
            </EmptyState>
          )
        }
      />
      <CreateOrganization
        isOpen={isCreating}
        plans={plans}
        onClose={() => setCreating(false)}
        onCreated={(created) => {
          setCreating(false)
          setSecret(created)
        }}
      />
      <SecretDialog shown={secret} title={text('operator.secretTitle')} onClose={() => setSecret(null)} />
    </>
  )
}

/** The codes of the plans; none while they load. */
function usePlanCodes(): readonly string[] {
  const result = useQueryResult(PLANS, {})
  return result.state === 'ready' ? result.data.plans.map(({ code }) => code) : []
}

interface CreateProps {
  readonly isOpen: boolean
  readonly plans: readonly string[]
  readonly onClose: () => void
  readonly onCreated: (secret: Secret) => void
}

function CreateOrganization({ isOpen, plans, onClose, onCreated }: CreateProps) {
  const text = useText()
  const [isBusy, setBusy] = useState(false)
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={text('operator.create')}
      description={text('operator.createHelp')}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button variant="primary" type="submit" form="create-organization" isBusy={isBusy}>
            {text('operator.create')}
          </Button>
        </>
      }
    >
      <CreateForm plans={plans} onBusy={setBusy} onCreated={onCreated} />
    </Dialog>
  )
}

interface CreateFormProps extends Pick<CreateProps, 'plans' | 'onCreated'> {
  readonly onBusy: (isBusy: boolean) => void
}

function CreateForm({ plans, onBusy, onCreated }: CreateFormProps) {
  const text = useText()
  const [name, setName] = useState('')
  const [plan, setPlan] = useState('')
  const [residencyPolicy, setPolicy] = useState<(typeof POLICIES)[number]>('UNRESTRICTED')
  const [isTried, setTried] = useState(false)
  const create = useAction(CREATE)
  const failures = useFieldFailures(create.failure, ['name', 'plan', 'residencyPolicy'])
  const length = [...name.trim()].length
  const isNamed = length > 0 && length <= MAX_NAME
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!isNamed) return
    onBusy(true)
    const created = await create.run({ input: { name: name.trim(), ...(plan && { plan }), residencyPolicy } })
    onBusy(false)
    if (created) onCreated({ name: created.createOrganization.organization.name, secret: created.createOrganization.key })
  }
  return (
    <form id="create-organization" noValidate onSubmit={submit} className="flex flex-col gap-4">
      <FailureNotice failure={failures.rest} />
      <Field label={text('operator.name')} error={(isTried && !isNamed && text('operator.problem.name')) || failures.of('name')} isRequired>
        {(control) => <Input {...control} value={name} onChange={({ target }) => setName(target.value)} />}
      </Field>
      <Field label={text('operator.plan')} error={failures.of('plan')}>
        {(control) => (
          <Select
            {...control}
            value={plan}
            onChange={setPlan}
            options={[{ value: '', label: text('operator.planDefault') }, ...plans.map((value) => ({ value, label: value }))]}
          />
        )}
      </Field>
      <Field label={text('operator.policy')} help={text('operator.policyHelp')} error={failures.of('residencyPolicy')}>
        {(control) => (
          <Select
            {...control}
            value={residencyPolicy}
            onChange={setPolicy}
            options={POLICIES.map((value) => ({ value, label: text(`operator.policy.${value}`) }))}
          />
        )}
      </Field>
    </form>
  )
}

function useColumns(): readonly Column<OrganizationRow>[] {
  const text = useText()
  const { bytes } = useFormats()
  return [
    {
      id: 'name',
      header: text('operator.organization'),
      cell: ({ id, name }) => (
        <>
          <Link to="/operator/organizations/$id" params={{ id }} className="font-medium underline-offset-4 hover:underline">
            <UserText className="max-w-44 sm:max-w-72">{name}</UserText>
          </Link>
          <div className="text-xs text-muted max-md:hidden">
            <Code>{id}</Code>
          </div>
        </>
      ),
    },
    { id: 'status', header: text('operator.status'), cell: ({ status }) => <OrganizationStatus status={status} /> },
    { id: 'plan', header: text('operator.plan'), cell: ({ plan }) => <Code className="font-sans">{plan.code}</Code>, shown: 'wide' },
    {
      id: 'policy',
      header: text('operator.policy'),
      cell: ({ residencyPolicy }) => text(`operator.policy.${residencyPolicy}`),
      shown: 'wide',
    },
    {
      id: 'stored',
      header: text('operator.stored'),
      cell: ({ stored }) => (stored ? bytes(stored.storageBytes) : '—'),
      isNumber: true,
      shown: 'wide',
    },
    { id: 'created', header: text('operator.created'), cell: ({ createdAt }) => <DateTime at={createdAt} style="date" />, shown: 'wide' },
  ]
}
