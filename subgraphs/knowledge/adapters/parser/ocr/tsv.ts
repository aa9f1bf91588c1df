/** A word that Tesseract found. Its position is in pixels. */
export interface Word {
  readonly text: string
  /** OCR confidence, 0 to 100. */
  readonly confidence: number
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  /** Identifies the block and its paragraph. */
  readonly paragraph: string
}

/** The levels of pages and words. Levels 2 to 4 are blocks, paragraphs and lines. */
const PAGE_LEVEL = '1'
const WORD_LEVEL = '5'
/** Direction marks, which Tesseract adds. Search ignores them. */
const DIRECTIONS = /[\u200e\u200f\u202a-\u202e]/g

/** Reads the size of the image, as Tesseract rotated it, from its table. */
export function readSize(tsv: string): { readonly width: number; readonly height: number } {
  const row = tsv.split('\n', 1)[0]!.split('\t')
  return row[0] === PAGE_LEVEL ? { width: Number(row[8]), height: Number(row[9]) } : { width: 0, height: 0 }
}

/** Reads Tesseract's table of words in reading order. Returns the words of each line that has any. */
export function readLines(tsv: string): readonly (readonly Word[])[] {
  const lines = new Map<string, Word[]>()
  for (const row of tsv.split('\n')) {
    const [level, , block, paragraph, line, , left, top, width, height, confidence, raw = ''] = row.split('\t')
    const text = raw.replace(DIRECTIONS, '').trim()
    if (level !== WORD_LEVEL || text === '') continue
    const word: Word = {
      text,
      confidence: Number(confidence),
      left: Number(left),
      top: Number(top),
      width: Number(width),
      height: Number(height),
      paragraph: `${block}.${paragraph}`,
    }
    const key = `${word.paragraph}.${line}`
    const known = lines.get(key)
    if (known) known.push(word)
    else lines.set(key, [word])
  }
  return [...lines.values()]
}
