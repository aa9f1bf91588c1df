import { Link } from '@tanstack/react-router'
import { CircleStop, Sparkles } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useClient } from 'urql'
import { useScope } from '../../../app/session.tsx'
import { type Failure, toFailure } from '../../../data/failure.ts'
import { graphql } from '../../../data/graphql.ts'
import { useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { Money } from '../../../parts/money.tsx'
import { FailureNotice } from '../../../parts/states.tsx'
import { harmless } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Select } from '../../../ui/input.tsx'
import { Card } from '../../../ui/surface.tsx'
import { cutCitations } from './citations.ts'
import type { Hit } from './search.ts'

const CHAT_MODELS = graphql(`
  query ModelsForAnswer {
    models(kind: CHAT) { id residency }
  }
`)

const ASK = graphql(`
  subscription AskFromChunks($request: ChatProtocolRequest!, $idempotencyKey: String) {
    chatCompletion(input: { request: $request, idempotencyKey: $idempotencyKey }) { id cursor textDelta finishReason cost }
  }
`)

/** Most chunks in the prompt: as many as small models handle well. */
const MAX_CHUNKS = 10
const INSTRUCTIONS =
  'Answer the question from the numbered passages only. After each statement put the number of its passage in brackets, such as [1]. If the passages do not answer the question, say so. Answer in the language of the question.'

interface AskProps {
  readonly collectionId: string
  readonly query: string
  readonly hits: readonly Hit[]
}

/** Lets a chat model answer the query from the found chunks. */
export function Ask(props: AskProps) {
  return useScope('INFERENCE') ? <AskPanel {...props} /> : null
}

interface Reply {
  readonly text: string
  readonly cost: string | null
  readonly isRunning: boolean
  readonly failure: Failure | null
}

function AskPanel({ collectionId, query, hits }: AskProps) {
  const text = useText()
  const result = useQueryResult(CHAT_MODELS, {})
  const models = result.state === 'ready' ? result.data.models : []
  const [chosen, setChosen] = useState('')
  const model = chosen || models[0]?.id
  const { reply, ask, stop } = useReply()
  const used = hits.slice(0, MAX_CHUNKS)
  return (
    <Card className="sm:p-4">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="min-w-0 grow basis-48 text-sm">{text('searching.ask')}</h2>
        <Select
          aria-label={text('searching.askModel')}
          value={model ?? ''}
          onChange={setChosen}
          options={models.map(({ id, residency }) => ({ value: id, label: `${id} · ${text(`residency.${residency}`)}` }))}
          className="w-auto min-w-48 max-sm:grow"
        />
        {reply?.isRunning ? (
          <Button icon={CircleStop} onClick={stop}>
            {text('searching.askStop')}
          </Button>
        ) : (
          <Button icon={Sparkles} disabled={!model} onClick={() => model && ask(model, toMessages(query, used))}>
            {text('searching.askAction')}
          </Button>
        )}
      </div>
      {reply && (
        <div className="mt-3 border-t pt-3">
          <FailureNotice failure={reply.failure} />
          <div aria-live="polite" aria-busy={reply.isRunning}>
            <Answer collectionId={collectionId} text={reply.text} hits={used} />
            {reply.isRunning && reply.text === '' && <p className="animate-pulse text-sm text-muted">{text('searching.askWaits')}</p>}
          </div>
          {reply.cost && (
            <p className="mt-2 text-xs text-muted">
              {text('searching.cost')} <Money amount={reply.cost} />
            </p>
          )}
        </div>
      )}
    </Card>
  )
}

function toMessages(query: string, hits: readonly Hit[]): readonly object[] {
  const chunks = hits.map(({ chunk }, index) => `[${index + 1}] ${chunk.document.name}\n${chunk.text}`).join('\n\n')
  return [
    { role: 'system', content: INSTRUCTIONS },
    { role: 'user', content: `${chunks}\n\n${query}` },
  ]
}

function useReply() {
  const client = useClient()
  const [reply, setReply] = useState<Reply | null>(null)
  const end = useRef<(() => void) | null>(null)
  useEffect(() => () => end.current?.(), [])
  const stop = () => {
    end.current?.()
    end.current = null
    setReply((now) => now && { ...now, isRunning: false })
  }
  const ask = (model: string, messages: readonly object[]) => {
    stop()
    setReply({ text: '', cost: null, isRunning: true, failure: null })
    const random = crypto.getRandomValues(new Uint32Array(4))
    // After a lost connection the same key follows the same answer from its start: the known part is skipped.
    let position = 0
    const { unsubscribe } = client
      .subscription(ASK, { request: { model, messages }, idempotencyKey: `ask-${random.join('-')}` })
      .subscribe(({ data, error }) => {
        if (error) return setReply((now) => now && { ...now, isRunning: false, failure: toFailure(error) })
        const event = data?.chatCompletion
        if (!event || Number(event.cursor) <= position) return
        position = Number(event.cursor)
        setReply(
          (now) =>
            now && {
              ...now,
              text: now.text + event.textDelta,
              cost: event.cost ?? now.cost,
              isRunning: event.cost === null && now.isRunning,
            },
        )
      })
    end.current = unsubscribe
  }
  return { reply, ask, stop }
}

/** The answer, with links to the chunks that it cites. */
function Answer({
  collectionId,
  text: answer,
  hits,
}: {
  readonly collectionId: string
  readonly text: string
  readonly hits: readonly Hit[]
}) {
  const text = useText()
  const { number } = useFormats()
  return (
    <div className="flex max-w-4xl flex-col gap-2 wrap-anywhere">
      {answer
        .split(/\n+/)
        .filter((line) => line.trim())
        .map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an answer only grows at its end.
          <p key={index} dir="auto" className="whitespace-pre-wrap">
            {cutCitations(line, hits.length).map((piece, index) => {
              if (typeof piece === 'string') return harmless(piece)
              const { chunk } = hits[piece - 1]!
              return (
                <Link
                  // biome-ignore lint/suspicious/noArrayIndexKey: as above.
                  key={index}
                  to="/collections/$id/documents/$documentId"
                  params={{ id: collectionId, documentId: chunk.document.id }}
                  search={{ passage: chunk.id }}
                  aria-label={text('searching.citation', { number: number(piece), name: chunk.document.name.slice(0, 80) })}
                  className="mx-0.5 inline-flex min-h-5 min-w-5 items-center justify-center rounded-md bg-accent-soft px-1 text-xs font-medium text-accent-text hover:underline"
                >
                  {number(piece)}
                </Link>
              )
            })}
          </p>
        ))}
    </div>
  )
}
