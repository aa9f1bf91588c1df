import { getRouteApi } from '@tanstack/react-router'
import { Search, SearchX, SlidersHorizontal } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { Money } from '../../../parts/money.tsx'
import { EmptyState, ErrorState, Loading } from '../../../parts/states.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button, DisclosureButton } from '../../../ui/button.tsx'
import { Switch } from '../../../ui/choices.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Select } from '../../../ui/input.tsx'
import { Notice } from '../../../ui/surface.tsx'
import type { CollectionFacts } from '../common/collections.ts'
import { type CollectionFilters, DOCUMENT_LANGUAGES, MODES } from '../common/filters.ts'
import { HelperChoice } from '../common/model-choice.tsx'
import { Ask } from './ask.tsx'
import { HitCard } from './hit.tsx'
import { DEFAULT_LIMIT, type Found, NO_RERANK, toGroups, toInput } from './search.ts'
import { useSearch } from './use-search.ts'

const route = getRouteApi('/collections/$id')
const LIMITS = ['5', '10', '20', '50'] as const
const EXPANDS = ['0', '1', '2', '3'] as const
const MIN_SCORES = ['0', '0.3', '0.5', '0.7', '0.9'] as const

/** Tries searches out: what is found, at which ranks, and why. */
export function SearchTab({ collection }: { readonly collection: CollectionFacts }) {
  const text = useText()
  const filters = route.useSearch()
  const navigate = route.useNavigate()
  const input = toInput(collection.id, filters)
  const { searching, submit } = useSearch(input)
  const change = (next: CollectionFilters) => void navigate({ search: (now) => ({ ...now, ...next }), resetScroll: false })
  return (
    <div className="flex flex-col gap-5">
      <SearchForm
        key={`form ${JSON.stringify(filters)}`}
        collection={collection}
        filters={filters}
        isBusy={searching.state === 'searching'}
        onSearch={(next) => {
          submit(toInput(collection.id, { ...filters, ...next }))
          change(next)
        }}
      />
      {searching.state === 'idle' && (
        <EmptyState icon={Search} title={text('searching.idle')}>
          {text('searching.idleHelp')}
        </EmptyState>
      )}
      {searching.state === 'searching' && <Loading lines={5} />}
      {searching.state === 'failed' && <ErrorState failure={searching.failure} retry={() => submit(input)} />}
      {searching.state === 'found' && (
        <Results key={`results ${JSON.stringify(filters)}`} collectionId={collection.id} filters={filters} found={searching.found} />
      )}
    </div>
  )
}

interface SearchFormProps {
  readonly collection: CollectionFacts
  readonly filters: CollectionFilters
  readonly isBusy: boolean
  readonly onSearch: (filters: CollectionFilters) => void
}

function SearchForm({ collection, filters, isBusy, onSearch }: SearchFormProps) {
  const text = useText()
  const { number } = useFormats()
  const [draft, setDraft] = useState(filters)
  const change = (next: CollectionFilters) => setDraft((now) => ({ ...now, ...next }))
  const {
    query = '',
    mode = 'HYBRID',
    language,
    limit = DEFAULT_LIMIT,
    expand = 0,
    min = 0,
    group = false,
    rerank,
    file,
    field,
    value,
  } = draft
  const chosen = [filters.language, filters.min, filters.expand, filters.group, filters.rerank, filters.file, filters.field].filter(Boolean)
  const [isOpen, setOpen] = useState(chosen.length > 0 || (filters.limit ?? DEFAULT_LIMIT) !== DEFAULT_LIMIT)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (query.trim()) onSearch({ ...draft, query: query.trim() })
  }
  return (
    <search>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <div className="flex flex-wrap gap-2">
          <Input
            type="search"
            aria-label={text('searching.query')}
            placeholder={text('searching.query')}
            maxLength={8192}
            value={query}
            onChange={({ target }) => change({ query: target.value })}
            className="h-11 min-w-0 grow basis-60 text-base"
          />
          <Select
            aria-label={text('searching.mode')}
            value={mode}
            onChange={(mode) => change({ mode })}
            options={MODES.map((value) => ({ value, label: text(`searching.mode.${value}`) }))}
            className="w-auto min-w-44 max-sm:grow [&>select]:h-11"
          />
          <Button
            type="submit"
            variant="primary"
            size="large"
            icon={Search}
            isBusy={isBusy}
            disabled={!query.trim()}
            className="max-sm:grow"
          >
            {text('common.search')}
          </Button>
        </div>
        <DisclosureButton icon={SlidersHorizontal} isOpen={isOpen} onToggle={setOpen} className="self-start">
          {text('searching.options')}
        </DisclosureButton>
        {isOpen && (
          <div className="grid grid-cols-2 items-end gap-4 rounded-xl border bg-surface p-4 lg:grid-cols-4">
            <Field label={text('documents.language')}>
              {(control) => (
                <Select
                  {...control}
                  value={language ?? ''}
                  onChange={(language) => change({ language: language || undefined })}
                  options={[
                    { value: '', label: text('common.all') },
                    ...DOCUMENT_LANGUAGES.map((value) => ({ value, label: text(`documents.language.${value}`) })),
                  ]}
                />
              )}
            </Field>
            <Field label={text('searching.file')}>
              {(control) => (
                <Input
                  {...control}
                  maxLength={255}
                  value={file ?? ''}
                  onChange={({ target }) => change({ file: target.value || undefined })}
                />
              )}
            </Field>
            <Field label={text('searching.field')}>
              {(control) => (
                <Input
                  {...control}
                  maxLength={64}
                  value={field ?? ''}
                  onChange={({ target }) => change({ field: target.value || undefined })}
                />
              )}
            </Field>
            <Field label={text('searching.value')}>
              {(control) => (
                <Input
                  {...control}
                  maxLength={512}
                  disabled={!field}
                  value={value ?? ''}
                  onChange={({ target }) => change({ value: target.value || undefined })}
                />
              )}
            </Field>
            <Field label={text('searching.limit')}>
              {(control) => (
                <Select
                  {...control}
                  value={String(limit)}
                  onChange={(limit) => change({ limit: Number(limit) })}
                  options={[...new Set([...LIMITS, String(limit)])].map((value) => ({ value, label: number(Number(value)) }))}
                />
              )}
            </Field>
            <Field label={text('searching.min')} help={text('searching.minHelp', { weak: number(0.3), strong: number(0.7) })}>
              {(control) => (
                <Select
                  {...control}
                  value={String(min)}
                  onChange={(min) => change({ min: Number(min) || undefined })}
                  options={[...new Set([...MIN_SCORES, String(min)])].map((value) => ({
                    value,
                    label: value === '0' ? text('searching.minAny') : number(Number(value)),
                  }))}
                />
              )}
            </Field>
            <Field label={text('searching.expand')}>
              {(control) => (
                <Select
                  {...control}
                  value={String(expand)}
                  onChange={(expand) => change({ expand: Number(expand) || undefined })}
                  options={EXPANDS.map((value) => ({ value, label: value === '0' ? text('common.none') : number(Number(value)) }))}
                />
              )}
            </Field>
            <Field label={text('collections.rerankModel')}>
              {(control) =>
                collection.rerankModel ? (
                  <Select
                    {...control}
                    value={rerank ?? ''}
                    onChange={(rerank) => change({ rerank: rerank || undefined })}
                    options={[
                      { value: '', label: collection.rerankModel.id },
                      { value: NO_RERANK, label: text('common.none') },
                    ]}
                  />
                ) : (
                  <HelperChoice
                    kind="rerank"
                    control={control}
                    value={rerank ?? ''}
                    onChange={(rerank) => change({ rerank: rerank || undefined })}
                  />
                )
              }
            </Field>
            <Switch label={text('searching.group')} checked={group} onChange={(group) => change({ group: group || undefined })} />
          </div>
        )}
      </form>
    </search>
  )
}

interface ResultsProps {
  readonly collectionId: string
  readonly filters: CollectionFilters
  readonly found: Found
}

function Results({ collectionId, filters, found }: ResultsProps) {
  const text = useText()
  const { number } = useFormats()
  const { hits, cost, rerank, facets } = found
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-muted">
        <p role="status">{text('searching.count', { count: hits.length, shown: number(hits.length) })}</p>
        <span>
          {text('searching.cost')} <Money amount={cost} />
        </span>
        {facets.map(({ field, values }) => (
          <span key={field} className="flex flex-wrap gap-x-2">
            {values.slice(0, 4).map(({ value, documents }) => (
              <span key={String(value)} className="whitespace-nowrap">
                {field === 'language' && (value === 'ar' || value === 'en') ? (
                  text(`documents.language.${value}`)
                ) : (
                  <UserText className="max-w-48">{shortType(String(value))}</UserText>
                )}{' '}
                <span className="tabular-nums">{number(documents)}</span>
              </span>
            ))}
          </span>
        ))}
      </div>
      {rerank && !rerank.applied && <Notice tone="warning">{text('searching.rerankFailed')}</Notice>}
      {hits.length === 0 ? (
        <EmptyState icon={SearchX} title={text('searching.none')}>
          {text('searching.noneHelp')}
        </EmptyState>
      ) : (
        <>
          <Ask collectionId={collectionId} query={filters.query ?? ''} hits={hits} />
          {filters.group ? (
            toGroups(hits).map(({ document, hits }) => (
              <section key={document.id} className="flex flex-col gap-3">
                <h2 className="text-base">
                  <UserText>{document.name}</UserText>
                </h2>
                <ol className="flex flex-col gap-3">
                  {hits.map(({ hit, rank }) => (
                    <HitCard key={hit.chunk.id} collectionId={collectionId} hit={hit} rank={rank} />
                  ))}
                </ol>
              </section>
            ))
          ) : (
            <ol className="flex flex-col gap-3">
              {hits.map((hit, index) => (
                <HitCard key={hit.chunk.id} collectionId={collectionId} hit={hit} rank={index + 1} />
              ))}
            </ol>
          )}
        </>
      )}
    </div>
  )
}

/** `application/pdf` as `pdf`; the long names of Office by their last word. */
function shortType(type: string): string {
  return type.split(/[/.]/).at(-1) ?? type
}
