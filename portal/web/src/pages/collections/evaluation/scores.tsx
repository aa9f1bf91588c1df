import { useState } from 'react'
import { useAnswer } from '../../../data/answer.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, RowsTable } from '../../../parts/data-table.tsx'
import { Answered } from '../../../parts/states.tsx'
import { useTime } from '../../../parts/time.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button } from '../../../ui/button.tsx'
import { classes } from '../../../ui/classes.ts'
import { Field } from '../../../ui/field.tsx'
import { Select } from '../../../ui/input.tsx'
import { MODES } from '../common/filters.ts'
import { change, MEASURES, type Measure, type ScoreRow, toRows } from './compare.ts'
import { EVALUATED_QUESTIONS, type Evaluation, type Score } from './evaluation.ts'

type Row = ScoreRow<Score>

/** Settings without a name of their own have that of their mode. */
export function useLabel(): (label: string) => string {
  const text = useText()
  return (label) => {
    const mode = MODES.find((each) => each === label.toUpperCase())
    return mode ? text(`searching.mode.${mode}`) : label
  }
}

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
  const [areQuestionsOpen, setQuestionsOpen] = useState(false)
  const rows = toRows(evaluation.settings, against?.settings ?? null)
  const columns: readonly Column<Row>[] = [
    {
      id: 'label',
      header: text('evaluation.settings'),
      cell: ({ label }) => label && <UserText className="max-w-44 font-medium">{labelOf(label)}</UserText>,
    },
    { id: 'ranking', header: text('evaluation.ranking'), cell: ({ score }) => text(`evaluation.ranking.${score.ranking}`) },
    {
      id: 'language',
      header: text('documents.language'),
      cell: ({ score: { language } }) =>
        language === 'ar' || language === 'en' ? text(`documents.language.${language}`) : text('common.all'),
    },
    { id: 'count', header: text('evaluation.questions'), isNumber: true, cell: ({ score }) => number(score.questionCount) },
    ...MEASURES.map((measure) => ({
      id: measure,
      header: text(`evaluation.${measure}`),
      isNumber: true,
      cell: (row: Row) => <Figure row={row} measure={measure} />,
    })),
  ]
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
      {rows.length > 0 && <RowsTable label={text('evaluation.scoresLabel')} columns={columns} rows={rows} rowId={({ key }) => key} />}
      <Button
        variant="ghost"
        size="small"
        className="self-start"
        aria-expanded={areQuestionsOpen}
        onClick={() => setQuestionsOpen(!areQuestionsOpen)}
      >
        {text('evaluation.byQuestion')}
      </Button>
      {areQuestionsOpen && <Questions evaluation={evaluation} />}
    </div>
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
  const answer = useAnswer(EVALUATED_QUESTIONS, { id: evaluation.id }, { types: ['Evaluation'] })
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
    <Answered answer={answer}>
      {({ evaluation }) => (
        <RowsTable label={text('evaluation.byQuestion')} columns={columns} rows={evaluation?.questions ?? []} rowId={({ id }) => id} />
      )}
    </Answered>
  )
}
