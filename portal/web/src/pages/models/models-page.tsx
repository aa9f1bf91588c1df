import { getRouteApi, Link } from '@tanstack/react-router'
import { Boxes, SearchX } from 'lucide-react'
import { useQueryResult } from '../../data/query-result.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { ResidencyBadge } from '../../parts/badges.tsx'
import { type Column, RowsTable } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { EmptyState, WhenReady } from '../../parts/states.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Button } from '../../ui/button.tsx'
import { Input, Select } from '../../ui/input.tsx'
import { Abilities } from './abilities.tsx'
import { ABILITIES, type Filters, KINDS, RESIDENCIES } from './filters.ts'
import { ModelSheet } from './model-sheet.tsx'
import { filterModels, MODELS, type Model } from './models.ts'
import { PriceSummary } from './price.tsx'

const route = getRouteApi('/models')

export function ModelsPage() {
  const text = useText()
  const result = useQueryResult(MODELS, {})
  return (
    <>
      <PageHeader title={text('models.title')} lead={text('models.lead')} />
      <WhenReady result={result}>
        {({ models }) =>
          models.length === 0 ? (
            <EmptyState icon={Boxes} title={text('models.none')}>
              {text('models.noneHelp')}
            </EmptyState>
          ) : (
            <Directory models={models} />
          )
        }
      </WhenReady>
    </>
  )
}

function Directory({ models }: { readonly models: readonly Model[] }) {
  const text = useText()
  const { number } = useFormats()
  const filters = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: Filters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const columns = useColumns()
  const shown = filterModels(models, filters)
  return (
    <>
      <FilterBar models={models} filters={filters} onChange={change} />
      <p role="status" className="mb-3 text-sm text-muted">
        {text('models.count', { count: shown.length, shown: number(shown.length), all: number(models.length) })}
      </p>
      {shown.length === 0 ? (
        <EmptyState
          icon={SearchX}
          title={text('common.nothingMatches')}
          actions={
            <Button asChild>
              <Link to="/models">{text('models.clearFilters')}</Link>
            </Button>
          }
        />
      ) : (
        <RowsTable label={text('models.title')} columns={columns} rows={shown} rowId={({ id }) => id} />
      )}
      <ModelSheet
        model={filters.model === undefined ? null : (models.find(({ id }) => id === filters.model) ?? 'unknown')}
        onClose={() => change({ model: undefined })}
      />
    </>
  )
}

interface FilterBarProps {
  readonly models: readonly Model[]
  readonly filters: Filters
  readonly onChange: (next: Filters) => void
}

function FilterBar({ models, filters, onChange }: FilterBarProps) {
  const text = useText()
  const { q = '', kind, residency, vendor, can = [] } = filters
  const vendors = [...new Set(models.map(({ vendor }) => vendor))].sort()
  return (
    <search className="mb-4 flex flex-col gap-3">
      <div className="grid gap-2 sm:grid-cols-2 lg:grid-cols-[minmax(0,2fr)_repeat(3,minmax(0,1fr))]">
        <Input
          type="search"
          aria-label={text('models.search')}
          placeholder={text('models.search')}
          value={q}
          onChange={(event) => onChange({ q: event.target.value || undefined })}
        />
        <Select
          aria-label={text('models.kind')}
          value={kind ?? ''}
          onChange={(kind) => onChange({ kind: kind || undefined })}
          options={[
            { value: '', label: text('models.allKinds') },
            ...KINDS.map((value) => ({ value, label: text(`models.kind.${value}`) })),
          ]}
        />
        <Select
          aria-label={text('models.residency')}
          value={residency ?? ''}
          onChange={(residency) => onChange({ residency: residency || undefined })}
          options={[
            { value: '', label: text('models.allResidencies') },
            ...RESIDENCIES.map((value) => ({ value, label: text(`residency.${value}`) })),
          ]}
        />
        <Select
          aria-label={text('models.vendor')}
          value={vendor ?? ''}
          onChange={(vendor) => onChange({ vendor: vendor || undefined })}
          options={[{ value: '', label: text('models.allVendors') }, ...vendors.map((value) => ({ value, label: value }))]}
        />
      </div>
      <fieldset className="flex flex-wrap gap-1.5">
        <legend className="sr-only">{text('models.abilities')}</legend>
        {ABILITIES.map((ability) => {
          const isOn = can.includes(ability)
          const next = isOn ? can.filter((each) => each !== ability) : [...can, ability]
          return (
            <Button
              key={ability}
              size="small"
              aria-pressed={isOn}
              className="aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
              onClick={() => onChange({ can: next.length > 0 ? next : undefined })}
            >
              {text(`models.${ability}`)}
            </Button>
          )
        })}
      </fieldset>
    </search>
  )
}

function useColumns(): readonly Column<Model>[] {
  const text = useText()
  return [
    {
      id: 'id',
      header: text('models.model'),
      cell: ({ id, vendor }) => (
        <>
          <Link
            to="/models"
            search={(now) => ({ ...now, model: id })}
            resetScroll={false}
            className="font-medium underline-offset-4 hover:underline"
          >
            <Code className="max-w-48 font-sans sm:max-w-72">{id}</Code>
          </Link>
          <div className="text-xs text-muted">
            <UserText className="max-w-48">{vendor}</UserText>
          </div>
        </>
      ),
    },
    {
      id: 'kind',
      header: text('models.kind'),
      cell: ({ kind }) => text(`models.kind.${kind}`),
      shown: 'wide',
      className: 'whitespace-nowrap',
    },
    { id: 'residency', header: text('models.residency'), cell: ({ residency }) => <ResidencyBadge residency={residency} /> },
    { id: 'abilities', header: text('models.abilities'), cell: (model) => <Abilities model={model} />, shown: 'wide' },
    {
      id: 'context',
      header: text('models.context'),
      cell: ({ contextWindow }) => <Digits value={contextWindow} />,
      isNumber: true,
      shown: 'wide',
    },
    { id: 'price', header: text('models.price'), cell: ({ price }) => <PriceSummary price={price} /> },
  ]
}
