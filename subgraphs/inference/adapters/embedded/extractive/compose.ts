import { type Candidate, rowText } from './candidates.ts'
import { type Language, toTerms } from './language.ts'
import { PHRASES } from './phrases.ts'

/** Files that an overview names, and sentences of the only one. */
const MAX_OVERVIEW = 4

/**
 * The sentences that answer, each source once: `“It opens at eight.” — rules.pdf, p. 3`, `“It opens at eight.” [#1]`. A
 * row of a table is shown with its headers.
 */
export function composeQuotes(support: readonly Candidate[], all: readonly Candidate[], question: string): string {
  const bySource = Map.groupBy(support, (candidate) => candidate.source ?? candidate)
  return [...bySource.values()].map((group) => withSource(quoteAll(group, all, question), group[0]!.source)).join('\n')
}

/** What the best results are about: a sentence of each file, or of each passage where there is one file. */
export function composeOverview(candidates: readonly Candidate[], language: Language): string {
  const isOneFile = new Set(candidates.map(({ file }) => file)).size === 1
  const firsts = [...Map.groupBy(candidates, ({ file, source }) => (isOneFile ? source : file)).values()]
  // Sentences say more than the columns of a table.
  const some = firsts.length === 1 ? candidates : firsts.map((group) => group[0]!).sort((a, b) => Number(!!a.row) - Number(!!b.row))
  const lines = some.slice(0, MAX_OVERVIEW).map((candidate) => {
    // A source that is no mark names the file itself.
    const name = !isOneFile && isMark(candidate.source) ? `${candidate.file}: ` : ''
    return `- ${name}${withSource(describe(candidate, language), candidate.source)}`
  })
  return [PHRASES[language].overview, ...lines].join('\n')
}

function describe({ text, row, language: own }: Candidate, language: Language): string {
  const headers = row?.map(({ header }) => header).filter((header) => header !== '') ?? []
  if (headers.length > 0) return `${PHRASES[language].table}${headers.join(language === 'ar' ? '، ' : ', ')}`
  return row ? text : quote(text, own)
}

/** Neighbours are one quote, in the order of the text; rows stand on lines of their own, best first. */
function quoteAll(group: readonly Candidate[], all: readonly Candidate[], question: string): string {
  const rows = group.filter(({ row }) => row).map((candidate) => shownRow(candidate, question))
  const places = group
    .filter(({ row }) => !row)
    .map((candidate) => all.indexOf(candidate))
    .sort((a, b) => a - b)
  const sentences = places.map((place, index) => {
    const gap = index === 0 ? '' : place === places[index - 1]! + 1 ? ' ' : ' … '
    return gap + all[place]!.text
  })
  return [...(sentences.length > 0 ? [quote(sentences.join(''), group[0]!.language)] : []), ...rows].join('\n')
}

/** The first column, and those that the question names; all where it names none. */
function shownRow({ row, language }: Candidate, question: string): string {
  const asked = new Set(toTerms(question))
  const isNamed = row!.map(({ header }) => toTerms(header).some((term) => asked.has(term)))
  if (!isNamed.slice(1).includes(true)) return rowText(row!, language)
  const shown = row!.filter(({ value }, column) => column === 0 || isNamed[column] || toTerms(value).some((term) => asked.has(term)))
  return rowText(shown, language)
}

/** In the quotation marks of its language, with others inside. */
function quote(text: string, language: Language): string {
  if (language === 'ar') return `«${text.replace(/[«“]/g, '“').replace(/[»”]/g, '”')}»`
  return `“${text.replace(/[“«]/g, '‘').replace(/[”»]/g, '’').replace(/"/g, "'")}”`
}

function withSource(text: string, source: string | null): string {
  if (source === null) return text
  return isMark(source) ? `${text} ${source}` : `${text} — ${source}`
}

function isMark(source: string | null): boolean {
  return source?.startsWith('[#') ?? false
}
