import { getRouteApi, Link } from '@tanstack/react-router'
import { KeyRound, Plus, SearchX } from 'lucide-react'
import { useState } from 'react'
import { useAction, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../parts/data-table.tsx'
import { Money } from '../../parts/money.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { type Secret, SecretDialog } from '../../parts/secret-dialog.tsx'
import { EmptyState } from '../../parts/states.tsx'
import { RelativeTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Input, Select } from '../../ui/input.tsx'
import { Badge } from '../../ui/surface.tsx'
import { inputOf, NEW_KEY } from './draft.ts'
import { type Filters, STATES } from './filters.ts'
import { KeyForm } from './key-form.tsx'
import { KeySheet } from './key-sheet.tsx'
import { KeyState } from './key-state.tsx'
import { CREATE, KEYS, type KeyRow } from './keys.ts'

const route = getRouteApi('/keys')

export function KeysPage() {
  const text = useText()
  const filters = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: Filters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<Secret | null>(null)
  const create = useAction(CREATE)
  const columns = useColumns()

  const { q, state } = filters
  const filter = { nameContains: q ?? null, isActive: state ? state === 'active' : null }
  const paging = usePaging(JSON.stringify(filter))
  const result = useQueryResult(KEYS, { ...paging.variables, filter }, { types: ['ApiKey'] })
  const isFiltered = q !== undefined || state !== undefined

  return (
    <>
      <PageHeader
        title={text('keys.title')}
        lead={text('keys.lead')}
        actions={
          <Button variant="primary" icon={Plus} onClick={() => setCreating(true)}>
            {text('keys.create')}
          </Button>
        }
      />
      <search className="mb-4 grid gap-2 sm:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <Input
          type="search"
          aria-label={text('keys.search')}
          placeholder={text('keys.search')}
          value={q ?? ''}
          onChange={({ target }) => change({ q: target.value || undefined })}
        />
        <Select
          aria-label={text('keys.state')}
          value={state ?? ''}
          onChange={(value) => change({ state: value || undefined })}
          options={[
            { value: '', label: text('keys.allStates') },
            ...STATES.map((value) => ({ value, label: text(`keys.states.${value}`) })),
          ]}
        />
      </search>
      <DataTable
        label={text('keys.title')}
        result={result}
        page={({ organization }) => organization?.apiKeys ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          isFiltered ? (
            <EmptyState
              icon={SearchX}
              title={text('common.nothingMatches')}
              actions={<Button onClick={() => change({ q: undefined, state: undefined })}>{text('keys.clearFilters')}</Button>}
            />
          ) : (
            <EmptyState icon={KeyRound} title={text('keys.none')}>
              {text('keys.noneHelp')}
            </EmptyState>
          )
        }
      />
      <KeyForm
        isOpen={isCreating}
        onClose={() => {
          create.reset()
          setCreating(false)
        }}
        title={text('keys.create')}
        action={text('keys.create')}
        start={NEW_KEY}
        isBusy={create.isRunning}
        failure={create.failure}
        onSubmit={async (draft) => {
          const created = await create.run({ input: inputOf(draft) })
          if (!created?.createApiKey) return
          setCreating(false)
          setSecret({ name: created.createApiKey.apiKey.name, secret: created.createApiKey.key })
        }}
      />
      <SecretDialog shown={secret} title={text('keys.secretTitle')} onClose={() => setSecret(null)} />
      <KeySheet id={filters.key ?? null} onClose={() => change({ key: undefined })} onSecret={setSecret} />
    </>
  )
}

function useColumns(): readonly Column<KeyRow>[] {
  const text = useText()
  return [
    {
      id: 'name',
      header: text('keys.name'),
      cell: ({ id, name, last4 }) => (
        <>
          <Link
            to="/keys"
            search={(now) => ({ ...now, key: id })}
            resetScroll={false}
            className="font-medium underline-offset-4 hover:underline"
          >
            <UserText className="max-w-48 sm:max-w-72">{name}</UserText>
          </Link>
          <div className="text-xs text-muted">
            <Code>{`…${last4}`}</Code>
          </div>
        </>
      ),
    },
    { id: 'state', header: text('keys.state'), cell: (apiKey) => <KeyState apiKey={apiKey} /> },
    {
      id: 'scopes',
      header: text('keys.scopes'),
      cell: ({ scopes }) => (
        <span className="flex flex-wrap gap-1">
          {scopes.map((scope) => (
            <Badge key={scope}>{text(`keys.scope.${scope}`)}</Badge>
          ))}
        </span>
      ),
      shown: 'wide',
    },
    {
      id: 'used',
      header: text('keys.lastUsed'),
      cell: ({ lastUsedAt }) => (lastUsedAt ? <RelativeTime at={lastUsedAt} /> : text('keys.never')),
      shown: 'wide',
    },
    {
      id: 'spent',
      header: text('keys.spent.thisMonth'),
      cell: ({ spent }) => <Money amount={spent?.thisMonth} />,
      isNumber: true,
    },
  ]
}
