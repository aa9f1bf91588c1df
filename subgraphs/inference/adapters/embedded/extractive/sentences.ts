/**
 * Longer sentences, in UTF-16 units, are cut: the model reads about 1,600 of Arabic, and a quote should be readable at
 * a glance.
 */
const MAX_SENTENCE_LENGTH = 600
/** A line of this length that does not end a sentence continues in the next one: the page's width has broken it. */
const WRAPPED_LINE_LENGTH = 40

const SEGMENTER = new Intl.Segmenter('en', { granularity: 'sentence' })

/** Longest tail in which an abbreviation is looked for. */
const TAIL_LENGTH = 12

/** After these the segmenter wrongly ends a sentence (Dr., p., Fig.; similar ones in Arabic). */
const ABBREVIATION = /(?:^|[\s(])(?:[دأمصجتط]|هـ|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|Art|Sec|vs|etc|cf|pp?|e\.g|i\.e)\.\s*$/

/** The sentences of a text, in order, without list marks. */
export function splitSentences(text: string): readonly string[] {
  const sentences: string[] = []
  for (const paragraph of splitParagraphs(text)) {
    let open: string[] = []
    for (const { segment } of SEGMENTER.segment(paragraph)) {
      open.push(segment)
      if (ABBREVIATION.test(segment.slice(-TAIL_LENGTH))) continue
      sentences.push(...pieces(open.join('').trim()))
      open = []
    }
    sentences.push(...pieces(open.join('').trim()))
  }
  return sentences
}

/** Joins lines that only the page's width has broken. */
function splitParagraphs(text: string): readonly string[] {
  const paragraphs: string[] = []
  let previous = ''
  for (const line of text.split(/\r\n|[\n\r\u2028\u2029]/)) {
    const clean = line.trim().replace(/^(?:[-*•–▪◦]|#{1,6}|\d{1,3}[.)])\s+/, '')
    const isWrapped =
      clean === line.trim() && !clean.startsWith('|') && previous.length >= WRAPPED_LINE_LENGTH && !/[.!?؟:؛]["”»)]?$/.test(previous)
    if (isWrapped && clean !== '') paragraphs[paragraphs.length - 1] += ` ${clean}`
    else if (clean !== '') paragraphs.push(clean)
    previous = clean
  }
  return paragraphs
}

function* pieces(sentence: string): Generator<string> {
  let rest = sentence
  while (rest.length > MAX_SENTENCE_LENGTH) {
    const head = rest.slice(0, MAX_SENTENCE_LENGTH)
    const end = Math.max(head.lastIndexOf('؛'), head.lastIndexOf(';'), head.lastIndexOf('،'), head.lastIndexOf(','))
    const cut = end > MAX_SENTENCE_LENGTH / 2 ? end + 1 : Math.max(head.lastIndexOf(' '), MAX_SENTENCE_LENGTH / 2)
    yield rest.slice(0, cut).trim()
    rest = rest.slice(cut).trim()
  }
  if (rest !== '') yield rest
}
