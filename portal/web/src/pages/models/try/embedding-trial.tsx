import { type FormEvent, useState } from 'react'
import { useAction } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { Button } from '../../../ui/button.tsx'
import { Field } from '../../../ui/field.tsx'
import { Textarea } from '../../../ui/input.tsx'
import { Card } from '../../../ui/surface.tsx'
import { cosine } from './conversation.ts'
import { EMBED } from './operations.ts'
import { Spent } from './spent.tsx'

interface Result {
  readonly likeness: number | null
  readonly dimensions: number
  readonly tokens: number
  readonly cost: string | null
}

/** How near two texts are in meaning, by one embedding model. */
export function EmbeddingTrial({ modelId }: { readonly modelId: string }) {
  const text = useText()
  const { number } = useFormats()
  const [typed, setTyped] = useState<readonly [string, string]>(['', ''])
  const [result, setResult] = useState<Result | null>(null)
  const embed = useAction(EMBED)
  const isReady = typed.every((each) => each.trim() !== '')
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (!isReady) return
    setResult(null)
    const embeddings = (await embed.run({ input: { model: modelId, input: [...typed], idempotencyKey: crypto.randomUUID() } }))
      ?.createEmbeddings
    if (!embeddings) return
    const [first = [], second = []] = [...embeddings.data].sort((a, b) => a.index - b.index).map(({ float }) => float ?? [])
    setResult({ likeness: cosine(first, second), dimensions: first.length, tokens: embeddings.promptTokens, cost: embeddings.cost })
  }
  return (
    <form onSubmit={submit} className="flex max-w-3xl flex-col gap-4">
      <div className="grid gap-4 sm:grid-cols-2">
        {([0, 1] as const).map((at) => (
          <Field key={at} label={text(at === 0 ? 'models.try.firstText' : 'models.try.secondText')}>
            {(control) => (
              <Textarea
                {...control}
                value={typed[at]}
                onChange={({ target }) => setTyped(at === 0 ? [target.value, typed[1]] : [typed[0], target.value])}
              />
            )}
          </Field>
        ))}
      </div>
      <div>
        <Button variant="primary" type="submit" isBusy={embed.isRunning} disabled={!isReady}>
          {text('models.try.compare')}
        </Button>
      </div>
      <FailureNotice failure={embed.failure} />
      <div role="status">
        {result && (
          <Card className="flex flex-col gap-2">
            <p className="text-sm text-muted">{text('models.try.likeness')}</p>
            <p className="text-2xl font-semibold tabular-nums">
              {result.likeness === null ? '—' : number(result.likeness, { minimumFractionDigits: 3, maximumFractionDigits: 3 })}
            </p>
            <p className="text-sm text-muted">{text('models.try.likenessHelp')}</p>
            <Spent cost={result.cost}>
              <span>{text('models.try.dimensions', { count: result.dimensions, shown: number(result.dimensions) })}</span>
              <span>{text('models.try.inputTokens', { count: result.tokens, shown: number(result.tokens) })}</span>
            </Spent>
          </Card>
        )}
      </div>
    </form>
  )
}
