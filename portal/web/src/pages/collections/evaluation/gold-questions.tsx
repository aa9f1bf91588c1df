import { ListChecks, Plus, Sparkles, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useScope } from '../../../app/session.tsx'
import { useAction, useQueryResult } from '../../../data/query-result.ts'
import { useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, DataTable, EMPTY_PAGE, usePaging } from '../../../parts/data-table.tsx'
import { Money } from '../../../parts/money.tsx'
import { EmptyState, FailureNotice } from '../../../parts/states.tsx'
import { UserText } from '../../../parts/user-text.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Checkbox } from '../../../ui/choices.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { Field } from '../../../ui/field.tsx'
import { Input, Select, Textarea } from '../../../ui/input.tsx'
import { toast } from '../../../ui/toast.tsx'
import {
  ADD_GOLD_QUESTIONS,
  CHAT_MODELS,
  DELETE_GOLD_QUESTION,
  GOLD_QUESTIONS,
  type GoldQuestion,
  SUGGEST_GOLD_QUESTIONS,
  type Suggestion,
} from './evaluation.ts'

interface GoldQuestionsProps {
  readonly collectionId: string
  readonly mayWrite: boolean
}

/** Questions whose answers one knows. */
export function GoldQuestions({ collectionId, mayWrite }: GoldQuestionsProps) {
  const text = useText()
  const maySuggest = useScope('INFERENCE')
  const paging = usePaging(collectionId)
  const result = useQueryResult(GOLD_QUESTIONS, { id: collectionId, ...paging.variables }, { types: ['GoldQuestion', 'DeletePayload'] })
  const [open, setOpen] = useState<'add' | 'suggest' | null>(null)
  const { run, isRunning, failure } = useAction(DELETE_GOLD_QUESTION)
  const actions = mayWrite && (
    <>
      {maySuggest && (
        <Button icon={Sparkles} onClick={() => setOpen('suggest')}>
          {text('evaluation.suggest')}
        </Button>
      )}
      <Button icon={Plus} onClick={() => setOpen('add')}>
        {text('evaluation.add')}
      </Button>
    </>
  )
  const columns: readonly Column<GoldQuestion>[] = [
    { id: 'query', header: text('evaluation.question'), cell: ({ query }) => <UserText isWhole>{query}</UserText> },
    {
      id: 'expected',
      header: text('evaluation.expected'),
      className: 'text-muted',
      cell: ({ expected }) => <Expected expected={expected} />,
    },
    ...(mayWrite
      ? [
          {
            id: 'delete',
            header: '',
            className: 'w-12',
            cell: ({ id, query }: GoldQuestion) => (
              <IconButton
                label={text('evaluation.deleteQuestion', { query: query.slice(0, 80) })}
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
    <section aria-labelledby="gold">
      <header className="mb-3 flex flex-wrap items-start gap-3">
        <div className="min-w-0 grow basis-60">
          <h2 id="gold" className="text-base">
            {text('evaluation.gold')}
          </h2>
          <p className="text-sm text-muted">{text('evaluation.goldHelp')}</p>
        </div>
        <div className="flex flex-wrap gap-2">{actions}</div>
      </header>
      <FailureNotice failure={failure} />
      <DataTable
        label={text('evaluation.gold')}
        result={result}
        page={({ collection }) => collection?.goldQuestions ?? EMPTY_PAGE}
        paging={paging}
        columns={columns}
        rowId={({ id }) => id}
        empty={
          <EmptyState icon={ListChecks} title={text('evaluation.noGold')}>
            {text('evaluation.noGoldHelp')}
          </EmptyState>
        }
      />
      <Dialog isOpen={open === 'add'} onClose={() => setOpen(null)} title={text('evaluation.add')} description={text('evaluation.addHelp')}>
        <AddForm collectionId={collectionId} onClose={() => setOpen(null)} />
      </Dialog>
      <Dialog
        isOpen={open === 'suggest'}
        onClose={() => setOpen(null)}
        title={text('evaluation.suggest')}
        description={text('evaluation.suggestHelp')}
        size="large"
      >
        <Suggest collectionId={collectionId} onClose={() => setOpen(null)} />
      </Dialog>
    </section>
  )
}

function Expected({ expected }: Pick<GoldQuestion, 'expected'>) {
  const text = useText()
  const { number } = useFormats()
  return (
    <ul className="flex flex-col gap-1 text-sm">
      {expected.map(({ fileName, page, phrase }) => (
        <li key={`${fileName} ${page} ${phrase}`} className="flex flex-wrap gap-x-2">
          {fileName && <UserText className="max-w-52">{fileName}</UserText>}
          {page !== null && <span>{text('document.page', { page: number(page) })}</span>}
          {phrase && (
            <span>
              “<UserText className="max-w-72">{phrase}</UserText>”
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}

function AddForm({ collectionId, onClose }: { readonly collectionId: string; readonly onClose: () => void }) {
  const text = useText()
  const { run, isRunning, failure } = useAction(ADD_GOLD_QUESTIONS)
  const [query, setQuery] = useState('')
  const [fileName, setFileName] = useState('')
  const [page, setPage] = useState('')
  const [phrase, setPhrase] = useState('')
  const [isTried, setTried] = useState(false)
  const isPageWrong = page.trim() !== '' && !/^[1-9]\d{0,5}$/.test(page.trim())
  const lacksChunk = !fileName.trim() && !phrase.trim()
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setTried(true)
    if (!query.trim() || lacksChunk || isPageWrong) return
    const expected = { fileName: fileName.trim() || null, page: page.trim() ? Number(page) : null, phrase: phrase.trim() || null }
    if (!(await run({ input: { collectionId, questions: [{ query, expected: [expected] }] } }))) return
    toast(text('evaluation.added'))
    onClose()
  }
  return (
    <form noValidate onSubmit={submit} className="flex flex-col gap-4">
      <Field label={text('evaluation.question')} isRequired error={isTried && !query.trim() ? text('collections.needed') : undefined}>
        {(control) => <Textarea {...control} rows={2} maxLength={1000} value={query} onChange={({ target }) => setQuery(target.value)} />}
      </Field>
      <Field
        label={text('evaluation.phrase')}
        help={text('evaluation.phraseHelp')}
        error={isTried && lacksChunk ? text('evaluation.phraseNeeded') : undefined}
      >
        {(control) => <Textarea {...control} rows={2} maxLength={300} value={phrase} onChange={({ target }) => setPhrase(target.value)} />}
      </Field>
      <div className="grid gap-4 sm:grid-cols-[minmax(0,1fr)_8rem]">
        <Field label={text('evaluation.file')}>
          {(control) => <Input {...control} maxLength={255} value={fileName} onChange={({ target }) => setFileName(target.value)} />}
        </Field>
        <Field label={text('evaluation.page')} error={isPageWrong ? text('document.problem.number') : undefined}>
          {(control) => (
            <Input {...control} inputMode="numeric" maxLength={6} value={page} onChange={({ target }) => setPage(target.value)} />
          )}
        </Field>
      </div>
      <FailureNotice failure={failure} />
      <footer className="flex flex-wrap justify-end gap-2">
        <Button onClick={onClose}>{text('common.cancel')}</Button>
        <Button type="submit" variant="primary" isBusy={isRunning}>
          {text('evaluation.addAction')}
        </Button>
      </footer>
    </form>
  )
}

function Suggest({ collectionId, onClose }: { readonly collectionId: string; readonly onClose: () => void }) {
  const text = useText()
  const { number } = useFormats()
  const models = useQueryResult(CHAT_MODELS, {})
  const offered = models.state === 'ready' ? models.data.models : []
  const [chosenModel, setModel] = useState('')
  const model = chosenModel || offered[0]?.id
  const [isBilingual, setBilingual] = useState(false)
  const suggesting = useAction(SUGGEST_GOLD_QUESTIONS)
  const adding = useAction(ADD_GOLD_QUESTIONS)
  const [suggestions, setSuggestions] = useState<readonly Suggestion[] | null>(null)
  const [cost, setCost] = useState<string | null>(null)
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set())
  const suggest = async () => {
    if (!model) return
    const done = await suggesting.run({ input: { collectionId, model, count: 10, otherLanguage: isBilingual } })
    if (!done) return
    const { suggestions, cost } = done.suggestGoldQuestions
    setSuggestions(suggestions)
    setCost(cost)
    setChosen(new Set(suggestions.keys()))
  }
  const add = async () => {
    const questions = (suggestions ?? [])
      .filter((_, index) => chosen.has(index))
      .map(({ query, expected }) => ({ query, expected: expected.map(({ fileName, page, phrase }) => ({ fileName, page, phrase })) }))
    if (!(await adding.run({ input: { collectionId, questions } }))) return
    toast(text('evaluation.added'))
    onClose()
  }
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-end gap-3">
        <Field label={text('searching.askModel')} className="grow basis-48">
          {(control) => (
            <Select
              {...control}
              value={model ?? ''}
              onChange={setModel}
              options={offered.map(({ id, residency }) => ({ value: id, label: `${id} · ${text(`residency.${residency}`)}` }))}
            />
          )}
        </Field>
        <Checkbox label={text('evaluation.bilingual')} checked={isBilingual} onChange={setBilingual} />
        <Button
          variant={suggestions ? 'secondary' : 'primary'}
          isBusy={suggesting.isRunning}
          disabled={!model}
          onClick={() => void suggest()}
        >
          {text('evaluation.suggestAction')}
        </Button>
      </div>
      <FailureNotice failure={suggesting.failure ?? adding.failure} />
      {suggestions && (
        <>
          <p role="status" className="text-sm text-muted">
            {text('evaluation.suggested', { count: suggestions.length, shown: number(suggestions.length) })} {text('searching.cost')}{' '}
            <Money amount={cost} />
          </p>
          <ul className="flex flex-col gap-3">
            {suggestions.map(({ query, expected }, index) => (
              <li key={query}>
                <Checkbox
                  label={<UserText isWhole>{query}</UserText>}
                  help={<Expected expected={expected} />}
                  checked={chosen.has(index)}
                  onChange={(isChosen) => {
                    const next = new Set(chosen)
                    isChosen ? next.add(index) : next.delete(index)
                    setChosen(next)
                  }}
                />
              </li>
            ))}
          </ul>
          <Button variant="primary" className="self-end" disabled={chosen.size === 0} isBusy={adding.isRunning} onClick={() => void add()}>
            {text('evaluation.addChosen', { count: chosen.size, shown: number(chosen.size) })}
          </Button>
        </>
      )}
    </div>
  )
}
