import { useId } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useQueryResult } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { ResidencyBadge } from '../../../parts/badges.tsx'
import { Money } from '../../../parts/money.tsx'
import { Loading, WhenReady } from '../../../parts/states.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import type { FieldControl } from '../../../ui/field.tsx'
import { Input, Select } from '../../../ui/input.tsx'
import { Notice } from '../../../ui/surface.tsx'
import { MODELS_FOR_COLLECTION, type ModelsForCollection } from './collections.ts'

interface EmbeddingChoiceProps {
  readonly label: string
  readonly value: string
  readonly onChange: (id: string) => void
  /** A model that is not offered, such as the present one. */
  readonly without?: string
}

/** Chooses the embedding model, with where it runs and what it costs. Without the scope to list them one types the id. */
export function EmbeddingChoice(props: EmbeddingChoiceProps) {
  const mayList = useScope('INFERENCE')
  if (!mayList) {
    return (
      <Input
        dir="ltr"
        aria-label={props.label}
        value={props.value}
        onChange={({ target }) => props.onChange(target.value)}
        spellCheck={false}
      />
    )
  }
  return <EmbeddingList {...props} />
}

function EmbeddingList({ label, value, onChange, without }: EmbeddingChoiceProps) {
  const text = useText()
  const name = useId()
  const result = useQueryResult(MODELS_FOR_COLLECTION, {})
  return (
    <WhenReady result={result} loading={<Loading lines={2} />}>
      {({ embedding }) => {
        const offered = embedding.filter(({ id }) => id !== without)
        if (offered.length === 0) return <Notice tone="warning">{text('collections.noEmbeddingModels')}</Notice>
        return (
          <div role="radiogroup" aria-label={label} className="flex max-h-72 flex-col gap-2 overflow-y-auto p-0.5">
            {offered.map(({ id, vendor, residency, price }) => (
              <label
                key={id}
                className="flex cursor-pointer flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border px-3 py-2 hover:bg-hover has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-accent"
              >
                <input
                  type="radio"
                  name={name}
                  checked={value === id}
                  onChange={() => onChange(id)}
                  className="size-4 shrink-0 accent-accent"
                />
                <span className="min-w-0 grow basis-40">
                  <Code className="font-sans text-sm font-medium">{id}</Code>
                  <span className="block text-xs text-muted">
                    <UserText>{vendor}</UserText>
                  </span>
                </span>
                <span className="flex shrink-0 flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted max-sm:ps-7 sm:flex-col sm:items-end">
                  <ResidencyBadge residency={residency} />
                  {price?.input ? (
                    <span>
                      <Money amount={price.input} /> {text('models.price.input')}
                    </span>
                  ) : (
                    text('models.priceUnknown')
                  )}
                </span>
              </label>
            ))}
          </div>
        )
      }}
    </WhenReady>
  )
}

interface HelperChoiceProps {
  readonly kind: 'rerank' | 'transcription'
  readonly control: FieldControl
  readonly value: string
  readonly onChange: (id: string) => void
  /** What the empty choice says. */
  readonly none?: string
}

/** Chooses a model that a collection can do without. */
export function HelperChoice(props: HelperChoiceProps) {
  const mayList = useScope('INFERENCE')
  if (!mayList) {
    return (
      <Input {...props.control} dir="ltr" value={props.value} onChange={({ target }) => props.onChange(target.value)} spellCheck={false} />
    )
  }
  return <HelperList {...props} />
}

function HelperList({ kind, control, value, onChange, none }: HelperChoiceProps) {
  const text = useText()
  const result = useQueryResult(MODELS_FOR_COLLECTION, {})
  const models: readonly Helper[] = result.state === 'ready' ? result.data[kind] : []
  const known = models.some(({ id }) => id === value)
  return (
    <Select
      {...control}
      value={value}
      onChange={onChange}
      options={[
        { value: '', label: none ?? text('common.none') },
        // The present one, which the key may not list.
        ...(value && !known ? [{ value, label: value }] : []),
        ...models.map(({ id, residency }) => ({ value: id, label: `${id} · ${text(`residency.${residency}`)}` })),
      ]}
    />
  )
}

type Helper = ModelsForCollection['rerank'][number] | ModelsForCollection['transcription'][number]
