import { BellRing } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { failureOfWork } from '../../../data/failure.ts'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { FactList } from '../../../parts/fact-list.tsx'
import { FailureText } from '../../../parts/failure-text.tsx'
import { FailureNotice, Loading, WhenReady } from '../../../parts/states.tsx'
import { RelativeTime } from '../../../parts/time.tsx'
import { Button } from '../../../ui/button.tsx'
import { ConfirmDialog, Dialog } from '../../../ui/dialog.tsx'
import { Field } from '../../../ui/field.tsx'
import { Select } from '../../../ui/input.tsx'
import { Card, Notice } from '../../../ui/surface.tsx'
import { toast } from '../../../ui/toast.tsx'
import { type CollectionChanges, DELETE_WATCH, SET_WATCH, WATCH, type Watch as WatchFacts } from './evaluation.ts'
import { SettingsFields, useLabel } from './settings-fields.tsx'
import { inputOf, isRepeated, readLabel, type SettingsDraft } from './settings-input.ts'

const HOUR = 3_600
const INTERVALS = { hour: HOUR, day: 24 * HOUR, week: 7 * 24 * HOUR, month: 30 * 24 * HOUR } as const
type Interval = keyof typeof INTERVALS
const INTERVAL_NAMES = Object.keys(INTERVALS) as readonly Interval[]
const FALLS = ['none', '0.01', '0.02', '0.05', '0.1', '0.2'] as const

interface WatchProps {
  readonly collectionId: string
  readonly mayWrite: boolean
}

/** Whether the service evaluates the collection by itself after changes, and how. */
export function Watch({ collectionId, mayWrite }: WatchProps) {
  const text = useText()
  const result = useQueryResult(WATCH, { id: collectionId }, { types: ['EvaluationWatch', 'DeletePayload'] })
  const [open, setOpen] = useState<'edit' | 'stop' | null>(null)
  const stopping = useAction(DELETE_WATCH)
  return (
    <section aria-labelledby="watch">
      <h2 id="watch" className="text-base">
        {text('evaluation.watch')}
      </h2>
      <p className="mb-3 text-sm text-muted">{text('evaluation.watchHelp')}</p>
      <WhenReady result={result} loading={<Loading lines={2} />}>
        {({ collection }) => {
          const watch = collection?.evaluationWatch ?? null
          return (
            <>
              <Card className="flex flex-col gap-4">
                {watch ? <Facts watch={watch} /> : <p className="text-sm">{text('evaluation.notWatched')}</p>}
                {mayWrite && (
                  <div className="flex flex-wrap gap-2">
                    <Button icon={watch ? undefined : BellRing} onClick={() => setOpen('edit')}>
                      {text(watch ? 'common.edit' : 'evaluation.watchAction')}
                    </Button>
                    {watch && <Button onClick={() => setOpen('stop')}>{text('evaluation.watchStop')}</Button>}
                  </div>
                )}
              </Card>
              <Dialog
                isOpen={open === 'edit'}
                onClose={() => setOpen(null)}
                title={text('evaluation.watch')}
                description={text('evaluation.watchPays')}
              >
                <Form collectionId={collectionId} watch={watch} onClose={() => setOpen(null)} />
              </Dialog>
            </>
          )
        }}
      </WhenReady>
      <ConfirmDialog
        isOpen={open === 'stop'}
        onClose={() => setOpen(null)}
        title={text('evaluation.watchStopTitle')}
        description={text('evaluation.watchStopHelp')}
        action={text('evaluation.watchStop')}
        onConfirm={async () => (await stopping.run({ collectionId })) !== null}
      >
        <FailureNotice failure={stopping.failure} />
      </ConfirmDialog>
    </section>
  )
}

function Facts({ watch }: { readonly watch: WatchFacts }) {
  const text = useText()
  const { number } = useFormats()
  const labelOf = useLabel()
  const changesText = useChangesText()
  const pointsText = usePointsText()
  const { settings, minIntervalSeconds, maxFall, changes, startedAt, error } = watch
  const interval = INTERVAL_NAMES.find((name) => INTERVALS[name] === minIntervalSeconds)
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text('evaluation.compared'), settings.map(({ label }) => labelOf(label)).join(text('common.listSeparator'))],
    [
      text('evaluation.interval'),
      interval
        ? text(`evaluation.interval.${interval}`)
        : number(minIntervalSeconds / HOUR, { style: 'unit', unit: 'hour', unitDisplay: 'long' }),
    ],
    [text('evaluation.maxFall'), maxFall === null ? text('evaluation.maxFall.none') : pointsText(maxFall)],
    [text('evaluation.changesSoFar'), changesText(changes) || text('evaluation.noChanges')],
    [text('evaluation.lastWatched'), startedAt ? <RelativeTime key="at" at={startedAt} /> : text('evaluation.neverWatched')],
  ]
  return (
    <>
      {error && (
        <Notice tone="danger">
          <p className="font-medium">{text('evaluation.watchEnded')}</p>
          <FailureText failure={failureOfWork(error)} />
        </Notice>
      )}
      <FactList facts={facts} />
    </>
  )
}

/** A share as points of a hundred. */
function usePointsText(): (share: number) => string {
  const text = useText()
  const { number } = useFormats()
  return (share) => {
    const points = Math.round(share * 1_000) / 10
    return text('evaluation.byPoints', { count: points, shown: number(points) })
  }
}

const CHANGES = ['added', 'replaced', 'deleted', 'updated', 'settings'] as const

/** What has changed in a collection, in words. Empty: nothing. */
export function useChangesText(): (changes: CollectionChanges) => string {
  const text = useText()
  const { number, list } = useFormats()
  return (changes) =>
    list(
      CHANGES.filter((kind) => changes[kind] > 0).map((kind) =>
        text(`evaluation.changes.${kind}`, { count: changes[kind], shown: number(changes[kind]) }),
      ),
    )
}

function Form({
  collectionId,
  watch,
  onClose,
}: {
  readonly collectionId: string
  readonly watch: WatchFacts | null
  readonly onClose: () => void
}) {
  const text = useText()
  const pointsText = usePointsText()
  const { run, isRunning, failure } = useAction(SET_WATCH)
  const [settings, setSettings] = useState<readonly SettingsDraft[]>(() => draftsOf(watch))
  const [interval, setChosen] = useState<Interval>(
    () => INTERVAL_NAMES.findLast((name) => INTERVALS[name] <= (watch?.minIntervalSeconds ?? INTERVALS.day)) ?? 'day',
  )
  const [maxFall, setMaxFall] = useState<(typeof FALLS)[number]>(() =>
    watch ? (FALLS.find((each) => each === String(watch.maxFall)) ?? (watch.maxFall === null ? 'none' : '0.05')) : '0.05',
  )
  return (
    <form
      noValidate
      className="flex flex-col gap-5"
      onSubmit={async (event) => {
        event.preventDefault()
        if (isRepeated(settings)) return
        const input = {
          collectionId,
          settings: settings.map(inputOf),
          minIntervalSeconds: INTERVALS[interval],
          maxFall: maxFall === 'none' ? null : Number(maxFall),
        }
        if (!(await run({ input }))) return
        toast(text('collections.saved'))
        onClose()
      }}
    >
      <SettingsFields value={settings} onChange={setSettings} />
      <Field label={text('evaluation.interval')}>
        {(control) => (
          <Select
            {...control}
            value={interval}
            onChange={setChosen}
            options={INTERVAL_NAMES.map((value) => ({ value, label: text(`evaluation.interval.${value}`) }))}
          />
        )}
      </Field>
      <Field label={text('evaluation.maxFall')} help={text('evaluation.maxFallHelp')}>
        {(control) => (
          <Select
            {...control}
            value={maxFall}
            onChange={setMaxFall}
            options={FALLS.map((value) => ({
              value,
              label: value === 'none' ? text('evaluation.maxFall.none') : pointsText(Number(value)),
            }))}
          />
        )}
      </Field>
      <FailureNotice failure={failure} />
      <footer className="flex flex-wrap justify-end gap-2">
        <Button onClick={onClose}>{text('common.cancel')}</Button>
        <Button type="submit" variant="primary" isBusy={isRunning} disabled={isRepeated(settings)}>
          {text('common.save')}
        </Button>
      </footer>
    </form>
  )
}

function draftsOf(watch: WatchFacts | null): readonly SettingsDraft[] {
  if (!watch) return [{ key: 0, mode: 'HYBRID', reranker: 'default' }]
  return watch.settings.map(({ label, mode, rerankModel, filter, lexicalWeight }, key) => ({
    key,
    own: { label, filter, lexicalWeight },
    mode,
    reranker: rerankModel ?? (readLabel(label)?.reranker === 'none' ? 'none' : 'default'),
  }))
}
