import { getRouteApi } from '@tanstack/react-router'
import { ChartNoAxesColumn, Play, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useRepeat } from '../../../data/calm.ts'
import { failureOfWork } from '../../../data/failure.ts'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { StatusBadge } from '../../../parts/badges.tsx'
import { type Column, RowsTable } from '../../../parts/data-table.tsx'
import { FailureText } from '../../../parts/failure-text.tsx'
import { Money } from '../../../parts/money.tsx'
import { EmptyState, FailureNotice, WhenReady } from '../../../parts/states.tsx'
import { DateTime } from '../../../parts/time.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Progress } from '../../../ui/surface.tsx'
import type { CollectionFacts } from '../common/collections.ts'
import type { CollectionFilters } from '../common/filters.ts'
import { DELETE_EVALUATION, EVALUATIONS, type Evaluation, START_EVALUATION } from './evaluation.ts'
import { GoldQuestions } from './gold-questions.tsx'
import { Scores } from './scores.tsx'
import { SettingsFields, useLabel } from './settings-fields.tsx'
import { inputOf, isRepeated, type SettingsDraft } from './settings-input.ts'
import { Watch } from './watch.tsx'

const route = getRouteApi('/collections/$id')
/** No event tells how far an evaluation is. */
const POLL_INTERVAL_MS = 2_000
const TONES = { RUNNING: 'info', COMPLETED: 'success', FAILED: 'danger' } as const

/** How well searches of the collection find what they should. */
export function EvaluationTab({ collection }: { readonly collection: CollectionFacts }) {
  const text = useText()
  const mayWrite = useScope('KNOWLEDGE_WRITE')
  const filters = route.useSearch()
  const navigate = route.useNavigate()
  const change = (next: CollectionFilters) => void navigate({ search: (now) => ({ ...now, ...next }), replace: true, resetScroll: false })
  const result = useQueryResult(EVALUATIONS, { id: collection.id }, { types: ['Evaluation', 'DeletePayload'] })
  const evaluations = result.state === 'ready' ? (result.data.collection?.evaluations.edges.map(({ node }) => node) ?? []) : []
  const running = evaluations.find(({ status }) => status === 'RUNNING')
  useRepeat(result, POLL_INTERVAL_MS, running !== undefined)
  const [isStarting, setStarting] = useState(false)
  const shown = filters.evaluation ? evaluations.find(({ id }) => id === filters.evaluation) : evaluations[0]
  const against = evaluations.find(({ id }) => id === filters.against && id !== shown?.id)
  return (
    <div className="flex flex-col gap-8">
      <section aria-labelledby="evaluations">
        <header className="mb-3 flex flex-wrap items-start gap-3">
          <div className="min-w-0 grow basis-60">
            <h2 id="evaluations" className="text-base">
              {text('evaluation.title')}
            </h2>
            <p className="text-sm text-muted">{text('evaluation.lead')}</p>
          </div>
          {mayWrite && (
            <Button variant="primary" icon={Play} disabled={running !== undefined} onClick={() => setStarting(true)}>
              {text('evaluation.start')}
            </Button>
          )}
        </header>
        <WhenReady result={result}>
          {() =>
            evaluations.length === 0 ? (
              <EmptyState icon={ChartNoAxesColumn} title={text('evaluation.none')}>
                {text('evaluation.noneHelp')}
              </EmptyState>
            ) : (
              <>
                <Evaluations
                  evaluations={evaluations}
                  shownId={shown?.id}
                  mayWrite={mayWrite}
                  onShow={(evaluation) => change({ evaluation })}
                />
                {shown && (
                  <Scores
                    evaluation={shown}
                    against={against ?? null}
                    others={evaluations.filter(({ id, status }) => id !== shown.id && status !== 'RUNNING')}
                    onCompare={(against) => change({ against })}
                  />
                )}
              </>
            )
          }
        </WhenReady>
      </section>
      <Watch collectionId={collection.id} mayWrite={mayWrite} />
      <GoldQuestions collectionId={collection.id} mayWrite={mayWrite} />
      <Start
        collectionId={collection.id}
        isOpen={isStarting}
        onClose={() => setStarting(false)}
        onStarted={(evaluation) => change({ evaluation })}
      />
    </div>
  )
}

interface EvaluationsProps {
  readonly evaluations: readonly Evaluation[]
  readonly shownId: string | undefined
  readonly mayWrite: boolean
  readonly onShow: (id: string) => void
}

function Evaluations({ evaluations, shownId, mayWrite, onShow }: EvaluationsProps) {
  const text = useText()
  const { number } = useFormats()
  const labelOf = useLabel()
  const { run, isRunning, failure } = useAction(DELETE_EVALUATION)
  const started = ({ id, startedAt }: Evaluation) => (
    <button
      type="button"
      aria-pressed={id === shownId}
      onClick={() => onShow(id)}
      className="min-h-6 rounded underline-offset-4 hover:underline aria-pressed:font-semibold aria-pressed:text-accent-text"
    >
      <DateTime at={startedAt} />
    </button>
  )
  const columns: readonly Column<Evaluation>[] = [
    { id: 'started', header: text('evaluation.startedAt'), cell: started },
    {
      id: 'status',
      header: text('documents.status'),
      cell: ({ status, progress, error }) => (
        <div className="flex min-w-28 flex-col items-start gap-1">
          <StatusBadge tone={TONES[status]} label={`evaluation.status.${status}`} isActive={status === 'RUNNING'} />
          {status === 'RUNNING' && (
            <Progress label={text('evaluation.progress')} value={progress.total > 0 ? progress.done / progress.total : null} />
          )}
          {error && (
            <span className="text-sm text-danger-text">
              <FailureText failure={failureOfWork(error)} />
            </span>
          )}
        </div>
      ),
    },
    { id: 'questions', header: text('evaluation.questions'), isNumber: true, cell: ({ progress }) => number(progress.total) },
    {
      id: 'settings',
      header: text('evaluation.compared'),
      shown: 'wide',
      cell: ({ settings }) => settings.map(({ label }) => labelOf(label)).join(text('common.listSeparator')),
    },
    { id: 'cost', header: text('evaluation.cost'), isNumber: true, shown: 'wide', cell: ({ cost }) => <Money amount={cost} /> },
    ...(mayWrite
      ? [
          {
            id: 'delete',
            header: '',
            className: 'w-12',
            cell: ({ id }: Evaluation) => (
              <IconButton
                label={text('evaluation.delete')}
                icon={Trash2}
                size="small"
                disabled={isRunning}
                onClick={() => void run({ id })}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <FailureNotice failure={failure} />
      <RowsTable
        label={text('evaluation.title')}
        columns={columns}
        rows={evaluations}
        rowId={({ id }) => id}
        card={{ name: started, replaces: ['started'] }}
      />
    </>
  )
}

interface StartProps {
  readonly collectionId: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onStarted: (id: string) => void
}

function Start({ collectionId, isOpen, onClose, onStarted }: StartProps) {
  const text = useText()
  const { run, isRunning, failure } = useAction(START_EVALUATION)
  const [settings, setSettings] = useState<readonly SettingsDraft[]>([{ key: 0, mode: 'HYBRID', reranker: 'default' }])
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={text('evaluation.start')}
      description={text('evaluation.startHelp')}
      actions={
        <>
          <Button onClick={onClose}>{text('common.cancel')}</Button>
          <Button
            variant="primary"
            isBusy={isRunning}
            disabled={isRepeated(settings)}
            onClick={async () => {
              const done = await run({ input: { collectionId, settings: settings.map(inputOf) } })
              if (!done) return
              onStarted(done.startEvaluation.evaluation.id)
              onClose()
            }}
          >
            {text('evaluation.startAction')}
          </Button>
        </>
      }
    >
      <SettingsFields value={settings} onChange={setSettings} />
      <div className="mt-4 empty:hidden">
        <FailureNotice failure={failure} />
      </div>
    </Dialog>
  )
}
