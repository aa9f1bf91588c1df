import { useId, useState } from 'react'
import { useQueryResult } from '../../../data/query-result.ts'
import { useFindText, useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, RowsTable } from '../../../parts/data-table.tsx'
import { WhenReady } from '../../../parts/states.tsx'
import { useTime } from '../../../parts/time.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { DisclosureButton } from '../../../ui/button.tsx'
import { classes } from '../../../ui/classes.ts'
import { Field } from '../../../ui/field.tsx'
import { Select } from '../../../ui/input.tsx'
import { Notice } from '../../../ui/surface.tsx'
import { change, MEASURES, type Measure, type ScoreRow, toRows } from './compare.ts'
import { EVALUATED_QUESTIONS, type Evaluation, type Score } from './evaluation.ts'
import { useLabel } from './settings-fields.tsx'
import { useChangesText } from './watch.tsx'

type Row = ScoreRow<Score>

interface ScoresProps {
  readonly evaluation: Evaluation
  readonly against: Evaluation | null
  readonly others: readonly Evaluation[]
  readonly onCompare: (id: string | undefined) => void
}

/** The figures of one evaluation: of the answer and of each leg, over all questions and by language. */
export function Scores({ evaluation, against, others, onCompare }: ScoresProps) {
  const text = useText()
  const time = useTime()
  const { number } = useFormats()
  const labelOf = useLabel()
  const questionsId = useId()
  const [areQuestionsOpen, setQuestionsOpen] = useState(false)
  const languageOf = ({ language }: Score) =>
    language === 'ar' || language === 'en' ? text(`documents.language.${language}`) : text('common.all')
  const rows = toRows(evaluation.settings, against?.settings ?? null)
  const columns: readonly Column<Row>[] = [
    {
      id: 'label',
      header: text('evaluation.settings'),
      cell: ({ label, isFirst }) => isFirst && <UserText className="max-w-44 font-medium">{labelOf(label)}</UserText>,
    },
    { id: 'ranking', header: text('evaluation.ranking'), cell: ({ score }) => text(`evaluation.ranking.${score.ranking}`) },
    { id: 'language', header: text('documents.language'), cell: ({ score }) => languageOf(score) },
    { id: 'count', header: text('evaluation.questions'), isNumber: true, shown: 'wide', cell: ({ score }) => number(score.questionCount) },
    ...MEASURES.map((measure) => ({
      id: measure,
      header: text(`evaluation.${measure}`),
      isNumber: true,
      cell: (row: Row) => <Figure row={row} measure={measure} />,
    })),
  ]
  const nameOf = ({ label, score }: Row) => (
    <>
      <UserText isWhole>{labelOf(label)}</UserText>
      <span className="block font-normal text-muted">
        {[text(`evaluation.ranking.${score.ranking}`), languageOf(score)].join(text('common.listSeparator'))}
      </span>
    </>
  )
  return (
    <div className="mt-6 flex flex-col gap-3">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div className="min-w-0 grow basis-60">
          <h3 className="text-sm">{text('evaluation.scores', { at: time(evaluation.startedAt) })}</h3>
          <p className="text-sm text-muted">{text('evaluation.scoresHelp')}</p>
        </div>
        {others.length > 0 && (
          <Field label={text('evaluation.compareWith')} className="min-w-56">
            {(control) => (
              <Select
                {...control}
                value={against?.id ?? ''}
                onChange={(id) => onCompare(id || undefined)}
                options={[
                  { value: '', label: text('common.none') },
                  ...others.map(({ id, startedAt }) => ({ value: id, label: time(startedAt) })),
                ]}
              />
            )}
          </Field>
        )}
      </div>
      <Falls evaluation={evaluation} />
      {rows.length > 0 && (
        <RowsTable
          label={text('evaluation.scoresLabel')}
          columns={columns}
          rows={rows}
          rowId={({ key }) => key}
          card={{ name: nameOf, replaces: ['label', 'ranking', 'language'] }}
        />
      )}
      <DisclosureButton
        variant="secondary"
        className="self-start"
        aria-controls={questionsId}
        isOpen={areQuestionsOpen}
        onToggle={setQuestionsOpen}
      >
        {text('evaluation.byQuestion')}
      </DisclosureButton>
      <div id={questionsId} className="empty:hidden">
        {areQuestionsOpen && <Questions evaluation={evaluation} />}
      </div>
    </div>
  )
}

/** What had changed before an evaluation of the watch, and what fell since the one before. */
function Falls({ evaluation: { changes, comparison } }: { readonly evaluation: Evaluation }) {
  const text = useText()
  const { percent } = useFormats()
  const labelOf = useLabel()
  const changesText = useChangesText()
  const find = useFindText()
  if (!changes) return null
  const falls = comparison?.falls ?? []
  return (
    <Notice tone={falls.length > 0 ? 'warning' : 'neutral'}>
      <p>{text('evaluation.afterChanges', { changes: changesText(changes) })}</p>
      {comparison && falls.length === 0 && <p>{text('evaluation.nothingFell')}</p>}
      {falls.length > 0 && (
        <ul className="mt-1 list-disc ps-5">
          {falls.map(({ settings, language, measure, before, after }) => (
            <li key={`${settings} ${language} ${measure}`}>
              {text('evaluation.fell', {
                settings: labelOf(settings),
                measure: find(`evaluation.${measure.replace(/_at_/, 'At')}`) ?? measure,
                language: language === 'ar' || language === 'en' ? text(`documents.language.${language}`) : text('common.all'),
                before: percent(before),
                after: percent(after),
              })}
            </li>
          ))}
        </ul>
      )}
    </Notice>
  )
}

/** A share of a hundred, and by how many points it moved. */
function Figure({ row, measure }: { readonly row: Row; readonly measure: Measure }) {
  const text = useText()
  const { number, percent } = useFormats()
  const moved = change(row, measure)
  return (
    <span className="whitespace-nowrap">
      {percent(row.score[measure])}
      {moved !== null && (
        <span
          className={classes('ms-1.5 text-xs', moved > 0 ? 'text-success-text' : moved < 0 ? 'text-danger-text' : 'text-muted')}
          title={text('evaluation.points')}
        >
          {number(moved, { signDisplay: 'exceptZero', maximumFractionDigits: 1 })}
        </span>
      )}
    </span>
  )
}

type Question = { readonly id: string; readonly query: string; readonly ranks: readonly Ranks[] }
type Ranks = {
  readonly combined: readonly (number | null)[]
  readonly words: readonly (number | null)[]
  readonly meaning: readonly (number | null)[]
}

/** At which rank each question's passage came. */
function Questions({ evaluation }: { readonly evaluation: Evaluation }) {
  const text = useText()
  const { number } = useFormats()
  const result = useQueryResult(EVALUATED_QUESTIONS, { id: evaluation.id }, { types: ['Evaluation'] })
  const labelOf = useLabel()
  const write = (ranks: readonly (number | null)[] | undefined) =>
    (ranks ?? []).map((rank) => (rank === null ? '—' : number(rank))).join(text('common.listSeparator'))
  const columns: readonly Column<Question>[] = [
    { id: 'query', header: text('evaluation.question'), cell: ({ query }) => <UserText isWhole>{query}</UserText> },
    ...evaluation.settings.flatMap(({ label }, index) => [
      {
        id: `combined ${index}`,
        header: text('evaluation.rankOf', { label: labelOf(label), ranking: text('evaluation.ranking.COMBINED') }),
        isNumber: true,
        cell: ({ ranks }: Question) => write(ranks[index]?.combined),
      },
      {
        id: `words ${index}`,
        header: text('evaluation.rankOf', { label: labelOf(label), ranking: text('evaluation.ranking.WORDS') }),
        isNumber: true,
        shown: 'wide' as const,
        cell: ({ ranks }: Question) => write(ranks[index]?.words),
      },
      {
        id: `meaning ${index}`,
        header: text('evaluation.rankOf', { label: labelOf(label), ranking: text('evaluation.ranking.MEANING') }),
        isNumber: true,
        shown: 'wide' as const,
        cell: ({ ranks }: Question) => write(ranks[index]?.meaning),
      },
    ]),
  ]
  return (
    <WhenReady result={result}>
      {({ evaluation }) => (
        <RowsTable
          label={text('evaluation.byQuestion')}
          columns={columns}
          rows={evaluation?.questions ?? []}
          rowId={({ id }) => id}
          card={{ name: ({ query }) => <UserText isWhole>{query}</UserText>, replaces: ['query'] }}
        />
      )}
    </WhenReady>
  )
}
