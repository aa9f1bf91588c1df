import { type Candidate, commaOf, rowText } from './candidates.ts'
import { type Language, toTerms } from './language.ts'
import { PHRASES } from './phrases.ts'

/** Files that an overview names, and sentences of the only one. */
const MAX_OVERVIEW = 4

/**
 * The sentences that answer, each source once: `“It opens at eight.” — rules.pdf, p. 3`, `“It opens at eight.” [#1]`.
 * Neighbours are one quote, in the order of the text; rows stand on lines of their own, best first.
 */
export function composeQuotes(support: readonly Candidate[], all: readonly Candidate[], question: string): string {
  const questionTerms = new Set(toTerms(question))
  const groups = Map.groupBy(support, (candidate) => candidate.source ?? candidate)
  const quotes = [...groups.values()].map((group) => {
    const positions = group.flatMap((candidate) => (candidate.row ? [] : all.indexOf(candidate))).sort((a, b) => a - b)
    const sentences = positions.map((position, i) => {
      const gap = i === 0 ? '' : position === positions[i - 1]! + 1 ? ' ' : ' … '
      return gap + all[position]!.text
    })
    const rows = group.flatMap(({ row }) => (row ? shownRow(row, questionTerms) : []))
    const lines = sentences.length > 0 ? [quote(sentences.join(''), group[0]!.language), ...rows] : rows
    return withSource(lines.join('\n'), group[0]!.source)
  })
  return quotes.join('\n')
}

/** What the best results are about: a sentence of each file, or of each passage where there is one file. */
export function composeOverview(candidates: readonly Candidate[], language: Language): string {
  const isOneFile = new Set(candidates.map(({ file }) => file)).size === 1
  const firsts = [...Map.groupBy(candidates, ({ file, source }) => (isOneFile ? source : file)).values()]
  // Sentences say more than the columns of a table.
  const some = firsts.length === 1 ? candidates : firsts.map((group) => group[0]!).sort((a, b) => Number(!!a.row) - Number(!!b.row))
  const lines = some.slice(0, MAX_OVERVIEW).map(({ text, row, source, file, language: own }) => {
    const headers = row?.map(({ header }) => header).filter((header) => header !== '') ?? []
    const table = headers.length > 0 ? PHRASES[language].table + headers.join(commaOf(language)) : text
    // A source that is no mark names the file itself.
    return `- ${!isOneFile && isMark(source) ? `${file}: ` : ''}${withSource(row ? table : quote(text, own), source)}`
  })
  return [PHRASES[language].overview, ...lines].join('\n')
}

/** The first column, and those that the question names; all where it names none. */
function shownRow(row: NonNullable<Candidate['row']>, questionTerms: ReadonlySet<string>): string {
  const isNamed = (text: string) => toTerms(text).some((term) => questionTerms.has(term))
  if (!row.slice(1).some(({ header }) => isNamed(header))) return rowText(row)
  return rowText(row.filter(({ header, value }, column) => column === 0 || isNamed(header) || isNamed(value)))
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
