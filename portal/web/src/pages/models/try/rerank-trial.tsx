import { type FormEvent, useState } from 'react'
import { useAction } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Textarea } from '../../../ui/input.tsx'
import { RERANK } from './operations.ts'
import { Spent } from './spent.tsx'

const MAX_TEXTS = 100

interface Result {
  readonly ranked: readonly { readonly at: number; readonly score: number; readonly text: string }[]
  readonly cost: string | null
}

/** The order that a model gives to texts, one in each line, for a question. */
export function RerankTrial({ modelId }: { readonly modelId: string }) {
  const text = useText()
  const { number } = useFormats()
  const [query, setQuery] = useState('')
  const [typed, setTyped] = useState('')
  const [result, setResult] = useState<Result | null>(null)
  const rerank = useAction(RERANK)
  const texts = typed
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const isReady = query.trim() !== '' && texts.length > 0 && texts.length <= MAX_TEXTS
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (!isReady) return
    setResult(null)
    const reranked = (
      await rerank.run({ input: { model: modelId, query: query.trim(), documents: texts, idempotencyKey: crypto.randomUUID() } })
    )?.createRerank
    if (reranked)
      setResult({ ranked: reranked.results.map(({ index, score }) => ({ at: index, score, text: texts[index]! })), cost: reranked.cost })
  }
  return (
    <form onSubmit={submit} className="flex max-w-3xl flex-col gap-4">
      <Field label={text('models.try.question')}>
        {(control) => <Input {...control} value={query} onChange={({ target }) => setQuery(target.value)} />}
      </Field>
      <Field
        label={text('models.try.texts')}
        help={text('models.try.textsHelp', { most: number(MAX_TEXTS) })}
        error={texts.length > MAX_TEXTS && text('models.try.textsProblem')}
      >
        {(control) => <Textarea {...control} rows={6} value={typed} onChange={({ target }) => setTyped(target.value)} />}
      </Field>
      <div>
        <Button variant="primary" type="submit" isBusy={rerank.isRunning} disabled={!isReady}>
          {text('models.try.rank')}
        </Button>
      </div>
      <FailureNotice failure={rerank.failure} />
      <div role="status" className="flex flex-col gap-3">
        {result && (
          <>
            <ol aria-label={text('models.try.order')} className="flex flex-col divide-y rounded-xl border bg-surface">
              {result.ranked.map(({ at, score, text }) => (
                <li key={at} className="flex items-start gap-4 px-4 py-3 text-sm">
                  <span className="w-14 shrink-0 text-muted tabular-nums">
                    {number(score, { minimumFractionDigits: 3, maximumFractionDigits: 3 })}
                  </span>
                  <UserText isWhole className="min-w-0">
                    {text}
                  </UserText>
                </li>
              ))}
            </ol>
            <Spent cost={result.cost} />
          </>
        )}
      </div>
    </form>
  )
}
