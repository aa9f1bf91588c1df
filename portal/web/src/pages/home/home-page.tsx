import { useCallback, useState } from 'react'
import { useScope, useViewer } from '../../app/session.tsx'
import { useCalm, useRepeat } from '../../data/calm.ts'
import { useEvents, useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { PageHeader } from '../../parts/page-header.tsx'
import { Loading, WhenReady } from '../../parts/states.tsx'
import { Checklist } from './checklist.tsx'
import { Documents } from './documents.tsx'
import { AGENTS, DOCUMENT_UPDATED, type HomeDocument, KEYS, KNOWLEDGE, RUN_ENDED } from './home.ts'
import { documentsNow, newestRuns, STEPS, stepsDone } from './overview.ts'
import { Runs } from './runs.tsx'
import { Spending, useSpending } from './spend.tsx'

/** Between two questions for the lists, while many documents move. */
const PAUSE_MS = 1_500
/** No event says that a run has begun, nor what moved between an answer and the beginning of the events. */
const POLL_INTERVAL_MS = 15_000
const NO_COUNTS = { queued: 0, processing: 0, ready: 0, failed: 0 }

/** Each part needs its own scope, and is left out without it. */
export function HomePage() {
  const text = useText()
  const { id: ownKey } = useViewer()
  const canRead = useScope('KNOWLEDGE_READ')
  const canWrite = useScope('KNOWLEDGE_WRITE')
  const canRun = useScope('AGENTS')
  const canSpend = useScope('BILLING_READ')
  const isAdmin = useScope('ADMIN')
  const knowledge = useQueryResult(KNOWLEDGE, {}, { pause: !canRead, types: ['Collection', 'Document'] })
  const agents = useQueryResult(AGENTS, {}, { pause: !canRun, types: ['Agent', 'AgentRun', 'WorkflowRun'] })
  const keys = useQueryResult(KEYS, {}, { pause: !isAdmin, types: ['ApiKey'] })
  const spending = useSpending(!canSpend)

  const refreshKnowledge = useCallback(() => knowledge.state === 'ready' && knowledge.refresh(), [knowledge])
  const live = useLiveDocuments(refreshKnowledge, !canRead)
  const refreshAgents = useCalm(() => agents.state === 'ready' && agents.refresh(), PAUSE_MS)
  useEvents(RUN_ENDED, {}, refreshAgents, { pause: !canRun })
  useRepeat(knowledge, POLL_INTERVAL_MS, canRead)
  useRepeat(agents, POLL_INTERVAL_MS, canRun)

  const isAllowed = { collection: canWrite, document: canWrite, ask: canRun, key: isAdmin }
  const done = stepsDone({
    knowledge: knowledge.state === 'ready' ? knowledge.data : null,
    agents: agents.state === 'ready' ? agents.data : null,
    keys: keys.state === 'ready' ? (keys.data.organization?.apiKeys.edges.map(({ node }) => node.id) ?? []) : null,
    ownKey,
  })
  const steps = STEPS.filter((step) => isAllowed[step] && done.has(step)).map((step) => ({ step, isDone: done.get(step)! }))
  const results = [canRead && knowledge, canRun && agents, isAdmin && keys, canSpend && spending.result]
  // All parts come at once: a part that came later would push down what is below it.
  if (results.some((result) => result && result.state === 'loading')) {
    return (
      <>
        <PageHeader title={text('home.title')} lead={text('home.lead')} />
        <Loading lines={6} />
      </>
    )
  }

  return (
    <>
      <PageHeader title={text('home.title')} lead={text('home.lead')} />
      <Checklist steps={steps} collectionId={knowledge.state === 'ready' ? knowledge.data.collections.edges[0]?.node.id : undefined} />
      {!canRead && !canRun && !canSpend && <p className="text-muted">{text('home.nothing')}</p>}
      <div className={`grid items-start gap-4 ${canSpend && (canRead || canRun) ? 'lg:grid-cols-[minmax(0,1fr)_20rem]' : ''}`}>
        {(canRead || canRun) && (
          <div className="flex min-w-0 flex-col gap-4">
            {canRead && (
              <WhenReady result={knowledge}>
                {(data) => <Documents {...documentsNow(data, live)} counts={data.organization?.documentCounts ?? NO_COUNTS} />}
              </WhenReady>
            )}
            {canRun && <WhenReady result={agents}>{(data) => <Runs runs={newestRuns(data)} />}</WhenReady>}
          </div>
        )}
        {canSpend && (
          <div className="flex min-w-0 flex-col gap-4 max-lg:order-first max-lg:grid max-lg:sm:grid-cols-2">
            <Spending {...spending} />
          </div>
        )}
      </div>
    </>
  )
}

/** What events said of documents since the page opened. When one comes, goes or changes its status, the lists are asked for again. */
function useLiveDocuments(refresh: () => void, pause: boolean): ReadonlyMap<string, HomeDocument | null> {
  const [documents, setDocuments] = useState<ReadonlyMap<string, HomeDocument | null>>(new Map())
  const refreshSoon = useCalm(refresh, PAUSE_MS)
  useEvents(
    DOCUMENT_UPDATED,
    {},
    ({ documentUpdated: { documentId, document } }) => {
      if (document?.status !== documents.get(documentId)?.status) refreshSoon()
      setDocuments((now) => new Map([...now].slice(-MAX_LIVE)).set(documentId, document))
    },
    { pause },
  )
  return documents
}

/** More than the page shows. Documents that left it are in the lists, as they are now. */
const MAX_LIVE = 200
