import { Plus, Trash2 } from 'lucide-react'
import { useScope } from '../../../app/session.tsx'
import { useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Select } from '../../../ui/input.tsx'
import { MODES } from '../common/filters.ts'
import { RERANK_MODELS } from './evaluation.ts'
import { isRepeated, MAX_SETTINGS, readLabel, type SettingsDraft } from './settings-input.ts'

/** What settings are called: the way of searching, and the reranker if it is named. Others have a name of their own. */
export function useLabel(): (label: string) => string {
  const text = useText()
  return (label) => {
    const read = readLabel(label)
    if (!read) return label
    const mode = text(`searching.mode.${read.mode}`)
    if (read.reranker === null) return mode
    return text('evaluation.modeWith', { mode, reranker: read.reranker === 'none' ? text('evaluation.noReranker') : read.reranker })
  }
}

interface SettingsFieldsProps {
  readonly value: readonly SettingsDraft[]
  readonly onChange: (value: readonly SettingsDraft[]) => void
}

/** The ways of searching that an evaluation compares. */
export function SettingsFields({ value, onChange }: SettingsFieldsProps) {
  const text = useText()
  const { number } = useFormats()
  const result = useQueryResult(RERANK_MODELS, {}, { pause: !useScope('INFERENCE') })
  const models = result.state === 'ready' ? (result.data.models ?? []) : []
  const change = (key: number, next: Partial<SettingsDraft>) =>
    onChange(value.map((each) => (each.key === key ? { ...each, ...next } : each)))
  const rerankers = (now: string) => [
    { value: 'default', label: text('evaluation.defaultReranker') },
    { value: 'none', label: text('evaluation.noReranker') },
    ...models.map(({ id }) => ({ value: id, label: id })),
    ...(now === 'default' || now === 'none' || models.some(({ id }) => id === now) ? [] : [{ value: now, label: now }]),
  ]
  return (
    <fieldset className="flex flex-col gap-2.5">
      <legend className="mb-2 text-sm font-medium">{text('evaluation.modes')}</legend>
      {value.map(({ key, mode, reranker }, index) => (
        <div key={key} className="flex flex-wrap items-center gap-2 sm:flex-nowrap">
          <Select
            aria-label={text('evaluation.modeNumber', { number: number(index + 1) })}
            value={mode}
            onChange={(mode) => change(key, { mode })}
            options={MODES.map((value) => ({ value, label: text(`searching.mode.${value}`) }))}
            className="min-w-36 flex-1 max-sm:basis-full"
          />
          <Select
            aria-label={text('evaluation.rerankerNumber', { number: number(index + 1) })}
            value={reranker}
            onChange={(reranker) => change(key, { reranker })}
            options={rerankers(reranker)}
            className="min-w-36 flex-1 max-sm:basis-full"
          />
          <IconButton
            label={text('evaluation.removeMode', { number: number(index + 1) })}
            icon={Trash2}
            size="small"
            disabled={value.length === 1}
            onClick={() => onChange(value.filter((each) => each.key !== key))}
          />
        </div>
      ))}
      {isRepeated(value) && (
        <p role="alert" className="text-sm text-danger-text">
          {text('evaluation.sameModes')}
        </p>
      )}
      <Button
        size="small"
        icon={Plus}
        className="self-start"
        disabled={value.length >= MAX_SETTINGS}
        onClick={() =>
          onChange([
            ...value,
            {
              key: Math.max(...value.map(({ key }) => key)) + 1,
              mode: MODES.find((mode) => value.every((each) => each.mode !== mode)) ?? 'HYBRID',
              reranker: 'default',
            },
          ])
        }
      >
        {text('evaluation.addMode')}
      </Button>
    </fieldset>
  )
}
