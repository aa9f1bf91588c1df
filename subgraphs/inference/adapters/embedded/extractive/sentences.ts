/**
 * Splits sentences above 600 UTF-16 units: the embedding model reads about 1,600 of Arabic, and a quote should be
 * readable at a glance.
 */
const PIECES = /[\s\S]{1,600}(?=\s|$)|[\s\S]{1,600}/g
/**
 * A line of at least this length that does not end a sentence continues in the next line: the page's width has broken
 * it.
 */
const WRAPPED_LINE_LENGTH = 40
const LINE_END = /[.!?؟:؛]["”»)]?$/
const LIST_MARK = /^(?:[-*•–▪◦]|#{1,6}|\d{1,3}[.)])\s+/

const SEGMENTER = new Intl.Segmenter('en', { granularity: 'sentence' })
/** After these abbreviations the segmenter wrongly ends a sentence (Dr., p., Fig.; similar ones in Arabic). */
const ABBREVIATION = /(?:^|[\s(])(?:[دأمصجتط]|هـ|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|Art|Sec|vs|etc|cf|pp?|e\.g|i\.e)\.\s*$/
/** Longest tail in which an abbreviation is searched for. */
const TAIL_LENGTH = 12

/** Returns the sentences of a text, in order, without list marks. */
export function splitSentences(text: string): readonly string[] {
  const sentences: string[] = []
  for (const paragraph of joinWrappedLines(text)) {
    let open: string[] = []
    for (const { segment, index } of SEGMENTER.segment(paragraph)) {
      open.push(segment)
      if (index + segment.length < paragraph.length && ABBREVIATION.test(segment.slice(-TAIL_LENGTH))) continue
      sentences.push(...(open.join('').trim().match(PIECES) ?? []))
      open = []
    }
  }
  return sentences.map((sentence) => sentence.trim()).filter((sentence) => sentence !== '')
}

function joinWrappedLines(text: string): readonly string[] {
  const paragraphs: string[][] = []
  let previous = ''
  for (const line of text.split(/\r\n|[\n\r\u2028\u2029]/)) {
    const clean = line.trim().replace(LIST_MARK, '')
    const isWrapped = clean === line.trim() && previous.length >= WRAPPED_LINE_LENGTH && !LINE_END.test(previous)
    if (isWrapped) paragraphs.at(-1)!.push(clean)
    else paragraphs.push([clean])
    previous = clean
  }
  return paragraphs.map((lines) => lines.join(' '))
}
