import { ArrowUp, Bot } from 'lucide-react'
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { Failure } from '../../../data/failure.ts'
import { useQueryResult } from '../../../data/query-result.ts'
import { useText } from '../../../i18n/text.tsx'
import { EmptyState, FailureNotice, NotFound, WhenReady } from '../../../parts/states.tsx'
import { harmless } from '../../../parts/user-text.tsx'
import { IconButton } from '../../../ui/button.tsx'
import { Textarea } from '../../../ui/input.tsx'
import type { Agent } from '../base/agents.ts'
import { Answer } from '../runs/answer.tsx'
import { readMessages, runsOfAnswers } from '../runs/messages.ts'
import { EndedRun, LiveRun } from '../runs/run-view.tsx'
import { RUN, RUNS, THREAD } from '../runs/runs.ts'
import { useStartRun } from '../runs/use-run.ts'

/** A question that was asked on this page. `key`: makes a repeat the same run. */
interface Turn {
  readonly key: string
  readonly question: string | null
  readonly runId: string | null
  readonly failure: Failure | null
}

interface ConversationProps {
  readonly agent: Agent
  readonly threadId: string | undefined
  /** A run that was in progress when the page was left. */
  readonly runId: string | undefined
  readonly onRun: (runId: string) => void
  readonly onEnded: (threadId: string | null) => void
}

export function Conversation({ agent, threadId, runId, onRun, onEnded }: ConversationProps) {
  const text = useText()
  const start = useStartRun()
  /** What the page began with. What comes later is in `turns`. */
  const [first] = useState({ threadId, runId })
  const [turns, setTurns] = useState<readonly Turn[]>(() =>
    first.runId ? [{ key: first.runId, question: null, runId: first.runId, failure: null }] : [],
  )
  const [running, setRunning] = useState<string | null>(first.runId ?? null)
  const end = useRef<HTMLDivElement>(null)
  const change = (key: string, next: Partial<Turn>) =>
    setTurns((now) => now.map((turn) => (turn.key === key ? { ...turn, ...next } : turn)))

  const send = async (question: string, key: string) => {
    setRunning(key)
    change(key, { failure: null })
    const started = await start({ agentId: agent.id, input: question, threadId: threadId ?? null }, key)
    if ('failure' in started) {
      change(key, { failure: started.failure })
      return setRunning(null)
    }
    change(key, { runId: started.runId })
    onRun(started.runId)
  }
  const ask = (question: string) => {
    const key = crypto.randomUUID()
    setTurns((now) => [...now, { key, question, runId: null, failure: null }])
    void send(question, key)
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new question is brought into view.
  useEffect(() => {
    if (turns.some(({ question }) => question !== null)) end.current?.scrollIntoView({ block: 'end' })
  }, [turns.length])

  return (
    <>
      <div role="log" aria-label={text('agents.conversation')} aria-busy={running !== null} className="flex grow flex-col gap-6 pb-6">
        {first.threadId && <StoredThread agentId={agent.id} threadId={first.threadId} isWithout={first.runId} />}
        {!first.threadId && turns.length === 0 && (
          <EmptyState icon={Bot} title={text('agents.ask')}>
            {text('agents.askHelp')}
          </EmptyState>
        )}
        {turns.map(({ key, question, runId, failure }) => (
          <div key={key} className="flex flex-col gap-4">
            {question !== null ? <Question text={question} /> : runId && <QuestionOfRun runId={runId} />}
            {runId ? (
              <LiveRun
                runId={runId}
                onDone={(threadId) => {
                  setRunning(null)
                  onEnded(threadId)
                }}
                retry={question === null || running !== null ? undefined : () => ask(question)}
              />
            ) : failure ? (
              <FailureNotice failure={failure} retry={question === null ? undefined : () => void send(question, key)} />
            ) : (
              <p role="status" className="animate-pulse text-sm text-muted">
                {text('agents.starting')}
              </p>
            )}
          </div>
        ))}
        <div ref={end} className="scroll-mb-40" />
      </div>
      <Composer isBusy={running !== null} onSend={ask} />
    </>
  )
}

function Question({ text }: { readonly text: string }) {
  return (
    <p
      dir="auto"
      className="max-w-[85%] self-end rounded-2xl rounded-ee-md bg-accent-soft px-4 py-2.5 wrap-anywhere whitespace-pre-wrap text-ink"
    >
      {harmless(text)}
    </p>
  )
}

/** The question of a run that was in progress when the page was left. */
function QuestionOfRun({ runId }: { readonly runId: string }) {
  const result = useQueryResult(RUN, { id: runId })
  const question = result.state === 'ready' ? readMessages(result.data.agentRun?.messages ?? []).at(-1) : undefined
  return question ? <Question text={question.text} /> : null
}

interface StoredThreadProps {
  readonly agentId: string
  readonly threadId: string
  /** The run that is shown below. */
  readonly isWithout: string | undefined
}

/** What was said before in a kept conversation. Answers whose run is kept have their citations and receipt. */
function StoredThread({ agentId, threadId, isWithout }: StoredThreadProps) {
  const result = useQueryResult(THREAD, { id: threadId })
  const runs = useQueryResult(RUNS, { id: agentId, first: 100, after: null, filter: { status: 'COMPLETED' } })
  if (runs.state === 'loading') return <WhenReady result={runs}>{() => null}</WhenReady>
  const ids = (runs.state === 'ready' ? (runs.data.agent?.runs.edges ?? []) : [])
    .filter(({ node }) => node.threadId === threadId)
    .map(({ node }) => node.id)
  return (
    <WhenReady result={result}>
      {({ thread }) => {
        if (!thread || thread.agentId !== agentId) return <NotFound />
        const messages = readMessages(thread.messages)
        const runOf = runsOfAnswers(messages, ids)
        return messages.map(({ role, text }, index) => {
          const runId = runOf[index]
          if (role === 'assistant' && runId && runId === isWithout) return null
          // biome-ignore-start lint/suspicious/noArrayIndexKey: messages keep their places.
          if (role === 'user') return <Question key={index} text={text} />
          return runId ? <EndedRun key={index} runId={runId} /> : <Answer key={index} source={text} citations={[]} />
          // biome-ignore-end lint/suspicious/noArrayIndexKey: messages keep their places.
        })
      }}
    </WhenReady>
  )
}

function Composer({ isBusy, onSend }: { readonly isBusy: boolean; readonly onSend: (question: string) => void }) {
  const text = useText()
  const [question, setQuestion] = useState('')
  const send = () => {
    if (isBusy || question.trim() === '') return
    onSend(question.trim())
    setQuestion('')
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    send()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <form onSubmit={submit} className="sticky bottom-0 -mx-1 bg-canvas px-1 pb-4">
      <div className="relative">
        <Textarea
          aria-label={text('agents.question')}
          placeholder={text('agents.question')}
          rows={2}
          className="resize-none pe-14"
          value={question}
          onChange={({ target }) => setQuestion(target.value)}
          onKeyDown={onKeyDown}
        />
        <IconButton
          type="submit"
          variant="primary"
          label={text('agents.send')}
          icon={ArrowUp}
          disabled={isBusy || question.trim() === ''}
          className="absolute end-2.5 bottom-4"
        />
      </div>
      <p className="text-xs text-muted">{text('agents.sendHelp')}</p>
    </form>
  )
}
