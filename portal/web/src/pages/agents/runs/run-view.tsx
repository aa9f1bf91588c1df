import { Receipt as ReceiptIcon, Search, Square, Wrench } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { failureOfWork } from '../../../data/failure.ts'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { CopyButton } from '../../../parts/copy-button.tsx'
import { Source } from '../../../parts/source.tsx'
import { FailureNotice, Loading, NotFound, WhenReady } from '../../../parts/states.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { Notice } from '../../../ui/surface.tsx'
import { useCollectionNames } from '../base/collection-names.ts'
import { Answer, CitationLocation, Mark } from './answer.tsx'
import { draftText, type Progress } from './progress.ts'
import { Receipt, useReceiptLine } from './receipt.tsx'
import { CANCEL, RUN, type Run } from './runs.ts'
import { useRunProgress } from './use-run.ts'

interface LiveRunProps {
  readonly runId: string
  readonly onDone?: (threadId: string | null) => void
  /** Asks again, if the run failed. */
  readonly retry?: () => void
}

/** The answer of a run that goes on, as it is written; then its result. */
export function LiveRun({ runId, onDone, retry }: LiveRunProps) {
  const { progress, failure } = useRunProgress(runId)
  const onDoneRef = useRef(onDone)
  onDoneRef.current = onDone
  const { isDone, threadId } = progress
  useEffect(() => {
    if (isDone) onDoneRef.current?.(threadId)
  }, [isDone, threadId])
  if (isDone) return <EndedRun runId={runId} retry={retry} />
  return (
    <div className="flex flex-col gap-3">
      <Steps progress={progress} />
      <Answer source={draftText(progress)} citations={[]} />
      <FailureNotice failure={failure} />
      {failure?.code !== 'not_found' && <Stop runId={runId} />}
    </div>
  )
}

function Stop({ runId }: { readonly runId: string }) {
  const text = useText()
  const cancel = useAction(CANCEL)
  return (
    <div className="flex items-center gap-3">
      <Button size="small" icon={Square} isBusy={cancel.isRunning} onClick={() => void cancel.run({ id: runId })}>
        {text('agents.stop')}
      </Button>
      <span className="animate-pulse text-sm text-muted">{text('agents.working')}</span>
      <FailureNotice failure={cancel.failure} />
    </div>
  )
}

/** What the run has done so far: its searches and calls of tools. */
function Steps({ progress }: { readonly progress: Progress }) {
  const text = useText()
  const { number } = useFormats()
  const names = useCollectionNames()
  if (progress.steps.every(({ searches, tools }) => searches.length + tools.length === 0)) return null
  return (
    <ol aria-label={text('agents.steps')} className="flex flex-col gap-1.5 border-s-2 ps-3 text-sm text-muted">
      {progress.steps.flatMap(({ number: at, tools, searches }) => [
        ...tools.map(({ id, name }) => (
          <li key={`${at}-${id}`} className="flex items-center gap-2">
            <Wrench className="size-4 shrink-0" aria-hidden />
            <span className="min-w-0">
              {text('agents.calledTool')} <Code className="max-w-56">{name}</Code>
            </span>
          </li>
        )),
        ...searches.map(({ query, collection, hits }, index) => (
          <li key={`${at}-search-${String(index)}`} className="flex items-center gap-2">
            <Search className="size-4 shrink-0" aria-hidden />
            <span className="min-w-0">
              {names.get(collection?.id ?? '') && (
                <>
                  <UserText className="max-w-48">{names.get(collection?.id ?? '')!}</UserText>{' '}
                </>
              )}
              <UserText className="max-w-64">{`“${query}”`}</UserText> ·{' '}
              {text('agents.hits', { count: hits.length, shown: number(hits.length) })}
            </span>
          </li>
        )),
      ])}
    </ol>
  )
}

/** A run that has ended: its answer, what it cites, and its receipt. */
export function EndedRun({ runId, retry }: Pick<LiveRunProps, 'runId' | 'retry'>) {
  const result = useQueryResult(RUN, { id: runId })
  return (
    <WhenReady result={result} loading={<Loading lines={2} />}>
      {({ agentRun }) => (agentRun ? <Result run={agentRun} retry={retry} /> : <NotFound />)}
    </WhenReady>
  )
}

interface ResultProps extends Pick<LiveRunProps, 'retry'> {
  readonly run: Run
  readonly isReceiptOpen?: boolean
}

export function Result({ run, isReceiptOpen = false, retry }: ResultProps) {
  const text = useText()
  const receiptLine = useReceiptLine()
  const { status, outputText, output, citations, error } = run
  const json = output === null ? null : JSON.stringify(output, null, 2)
  return (
    <div className="flex flex-col gap-3">
      {status === 'CANCELLED' && <Notice>{text('agents.wasCancelled')}</Notice>}
      {error && <FailureNotice failure={failureOfWork(error)} retry={retry} />}
      {json === null ? (
        outputText !== null && <Answer source={outputText} citations={citations} />
      ) : (
        <Source label={text('agents.answer')} source={json} />
      )}
      {citations.length > 0 && (
        <section aria-label={text('agents.citations')}>
          <ul className="flex flex-wrap gap-x-4 gap-y-1.5 text-sm">
            {citations.map((citation) => (
              <li key={citation.mark} className="flex max-w-full min-w-0 items-center gap-1">
                <Mark number={citation.mark} citation={citation} />
                <CitationLocation citation={citation} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <div className="flex flex-wrap items-start gap-x-2">
        {(json ?? outputText) && <CopyButton value={json ?? outputText!} label={text('agents.copyAnswer')} />}
        <details open={isReceiptOpen} className="min-w-0 grow">
          <summary className="inline-flex min-h-8 items-center gap-2 rounded-md px-1 text-sm text-muted hover:text-ink">
            <ReceiptIcon className="size-4 shrink-0" aria-hidden />
            {receiptLine(run)}
          </summary>
          <div className="mt-2">
            <Receipt run={run} />
          </div>
        </details>
      </div>
    </div>
  )
}
