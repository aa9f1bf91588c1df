import { useEffect, useRef, useState } from 'react'
import { useClient } from 'urql'
import { useScope } from '../../../app/session.tsx'
import { useRepeat } from '../../../data/calm.ts'
import { type Failure, failureOfWork, toFailure } from '../../../data/failure.ts'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { ResidencyBadge, StatusBadge } from '../../../parts/badges.tsx'
import { type Column, RowsTable } from '../../../parts/data-table.tsx'
import { FailureText } from '../../../parts/failure-text.tsx'
import { Money } from '../../../parts/money.tsx'
import { FailureNotice, Loading, WhenReady } from '../../../parts/states.tsx'
import { DateTime } from '../../../parts/time.tsx'
import { Code } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { ConfirmDialog } from '../../../ui/dialog.tsx'
import { Card, Notice, Progress } from '../../../ui/surface.tsx'
import type { CollectionFacts } from '../common/collections.ts'
import { EmbeddingChoice } from '../common/model-choice.tsx'
import {
  CANCEL_REEMBEDDING,
  COLLECTION_REEMBEDDINGS,
  isUnderWay,
  QUOTE_REEMBEDDING,
  type Quote,
  type Reembedding,
  START_REEMBEDDING,
} from './reembedding.ts'

/** Poll interval. No event reports the progress. */
const POLL_INTERVAL_MS = 2_000

/** A change of the embedding model: its price, then its progress, and earlier changes. */
export function Reembed({ collection, onEnded }: { readonly collection: CollectionFacts; readonly onEnded: () => void }) {
  const text = useText()
  const result = useQueryResult(COLLECTION_REEMBEDDINGS, { id: collection.id }, { types: ['Reembedding'] })
  const runs = result.state === 'ready' ? (result.data.collection?.reembeddings.edges.map(({ node }) => node) ?? []) : []
  const current = runs.find(isUnderWay)
  const wasUnderWay = useRef(false)
  // The head of the page names the model that searches use from then on.
  useEffect(() => {
    if (wasUnderWay.current && !current) onEnded()
    wasUnderWay.current = current !== undefined
  }, [current, onEnded])
  useRepeat(result, POLL_INTERVAL_MS, current !== undefined)
  return (
    <Card aria-labelledby="reembed">
      <h2 id="reembed" className="text-base">
        {text('settings.reembed')}
      </h2>
      <p className="mt-1 mb-4 max-w-2xl text-sm text-muted">{text('settings.reembedHelp')}</p>
      <WhenReady result={result} loading={<Loading lines={2} />}>
        {() => (
          <>
            {current ? <UnderWay run={current} /> : <Choose collection={collection} />}
            <Earlier runs={runs.filter((run) => !isUnderWay(run))} />
          </>
        )}
      </WhenReady>
    </Card>
  )
}

function Choose({ collection }: { readonly collection: CollectionFacts }) {
  const text = useText()
  const client = useClient()
  const [model, setModel] = useState('')
  const [quote, setQuote] = useState<Quote | null>(null)
  const [failure, setFailure] = useState<Failure | null>(null)
  const [isQuoting, setQuoting] = useState(false)
  const { run, failure: startFailure, reset } = useAction(START_REEMBEDDING)
  const input = { collectionId: collection.id, embeddingModel: model.trim() }
  const requestQuote = async () => {
    setQuoting(true)
    setFailure(null)
    reset()
    const { data, error } = await client.query(QUOTE_REEMBEDDING, { input }, { requestPolicy: 'network-only' }).toPromise()
    setQuoting(false)
    if (data) setQuote(data.quoteReembedding)
    else setFailure(toFailure(error ?? {}))
  }
  return (
    <div className="flex flex-col gap-4">
      <EmbeddingChoice label={text('settings.newModel')} value={model} onChange={setModel} />
      <FailureNotice failure={failure} />
      <Button className="self-start" disabled={!model.trim()} isBusy={isQuoting} onClick={() => void requestQuote()}>
        {text('settings.quote')}
      </Button>
      <ConfirmDialog
        isOpen={quote !== null}
        onClose={() => setQuote(null)}
        title={text('settings.quoteTitle')}
        description={text('settings.quoteHelp')}
        action={text('settings.start')}
        onConfirm={async () => Boolean(await run({ input }))}
      >
        {quote && <QuoteFacts quote={quote} model={model} />}
        <div className="mt-3 empty:hidden">
          <FailureNotice failure={startFailure} />
        </div>
      </ConfirmDialog>
    </div>
  )
}

function QuoteFacts({ quote, model }: { readonly quote: Quote; readonly model: string }) {
  const text = useText()
  const { number } = useFormats()
  return (
    <>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-2 text-sm">
        <dt className="text-muted">{text('collections.embeddingModel')}</dt>
        <dd className="flex flex-wrap items-center gap-2">
          <Code className="font-sans">{quote.embeddingModel?.id ?? model}</Code>
          {quote.embeddingModel && <ResidencyBadge residency={quote.embeddingModel.residency} />}
        </dd>
        <dt className="text-muted">{text('collections.chunks')}</dt>
        <dd>{number(quote.passages)}</dd>
        <dt className="text-muted">{text('settings.tokens')}</dt>
        <dd>{quote.isExact ? number(quote.tokens) : text('settings.about', { count: number(quote.tokens) })}</dd>
        <dt className="text-muted">{text('settings.hold')}</dt>
        <dd className="font-medium">
          <Money amount={quote.amount} />
        </dd>
      </dl>
      {!quote.isCovered && (
        <div className="mt-3">
          <Notice tone="warning">{text('settings.notCovered')}</Notice>
        </div>
      )}
    </>
  )
}

function UnderWay({ run }: { readonly run: Reembedding }) {
  const text = useText()
  const { number } = useFormats()
  const cancelling = useAction(CANCEL_REEMBEDDING)
  const [isConfirming, setConfirming] = useState(false)
  const { id, status, stage, progress, cost, error, embeddingModelId } = run
  // The run ended while the dialog was open.
  useEffect(() => {
    if (status !== 'RUNNING') setConfirming(false)
  }, [status])
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-3 text-sm">
        <StatusBadge tone="info" label={`settings.status.${status}`} isActive />
        <Code className="font-sans">{embeddingModelId}</Code>
        <span className="text-muted">{stage && text(`settings.stage.${stage}`)}</span>
        <span className="grow" />
        {status === 'RUNNING' && (
          <Button size="small" onClick={() => setConfirming(true)}>
            {text('settings.cancel')}
          </Button>
        )}
      </div>
      <Progress label={text('settings.progress')} value={progress.total > 0 ? progress.done / progress.total : null} />
      <p className="flex flex-wrap justify-between gap-3 text-sm text-muted">
        <span>{text('documents.progress', { done: number(progress.done), total: number(progress.total) })}</span>
        <span>
          {text('settings.costSoFar')} <Money amount={cost} />
        </span>
      </p>
      {error && (
        <Notice tone="warning">
          <FailureText failure={failureOfWork(error)} />
        </Notice>
      )}
      <FailureNotice failure={cancelling.failure} />
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        isDangerous
        title={text('settings.cancelTitle')}
        description={text('settings.cancelHelp')}
        action={text('settings.cancel')}
        onConfirm={async () => {
          await cancelling.run({ id })
          return true
        }}
      />
    </div>
  )
}

const TONES = { COMPLETED: 'success', FAILED: 'danger', CANCELLED: 'neutral', RUNNING: 'info', CANCELLING: 'info' } as const

function Earlier({ runs }: { readonly runs: readonly Reembedding[] }) {
  const text = useText()
  const mayReadWallet = useScope('BILLING_READ')
  if (runs.length === 0) return null
  const columns: readonly Column<Reembedding>[] = [
    {
      id: 'model',
      header: text('collections.embeddingModel'),
      className: 'max-w-52',
      cell: ({ embeddingModelId }) => <Code className="font-sans">{embeddingModelId}</Code>,
    },
    {
      id: 'status',
      header: text('documents.status'),
      cell: ({ status, error }) => (
        <>
          <StatusBadge tone={TONES[status]} label={`settings.status.${status}`} />
          {error && (
            <p className="mt-1 text-sm text-danger-text">
              <FailureText failure={failureOfWork(error)} />
            </p>
          )}
        </>
      ),
    },
    ...(mayReadWallet
      ? [{ id: 'cost', header: text('settings.paid'), isNumber: true, cell: ({ cost }: Reembedding) => <Money amount={cost} /> }]
      : []),
    { id: 'ended', header: text('settings.ended'), shown: 'wide', cell: ({ endedAt }) => <DateTime at={endedAt} /> },
  ]
  return (
    <div className="mt-6">
      <h3 className="mb-2 text-sm">{text('settings.earlier')}</h3>
      <RowsTable label={text('settings.earlier')} columns={columns} rows={runs} rowId={({ id }) => id} />
    </div>
  )
}
