/** A part of a text, in UTF-16 units. */
export interface Mark {
  readonly start: number
  readonly end: number
}

interface Piece {
  readonly text: string
  readonly isMarked: boolean
}

interface Line {
  /** The start of the line in the text. */
  readonly start: number
  readonly pieces: readonly Piece[]
}

/** Returns the marks in order, without those that are empty, outside the text or inside another. */
function inOrder(marks: readonly Mark[], length: number): readonly Mark[] {
  const sorted = marks
    .map(({ start, end }) => ({ start: Math.max(start, 0), end: Math.min(end, length) }))
    .filter(({ start, end }) => end > start)
    .sort((one, other) => one.start - other.start)
  const joined: Mark[] = []
  for (const mark of sorted) {
    const last = joined.at(-1)
    if (last && mark.start <= last.end) joined[joined.length - 1] = { start: last.start, end: Math.max(last.end, mark.end) }
    else joined.push(mark)
  }
  return joined
}

/** Splits a text into its lines, and each line where a mark starts or ends. Lines without text are left out. */
export function toLines(text: string, marks: readonly Mark[]): readonly Line[] {
  const ordered = inOrder(marks, text.length)
  const lines: Line[] = []
  let start = 0
  let first = 0
  for (const line of text.split('\n')) {
    const end = start + line.length
    while (first < ordered.length && ordered[first]!.end <= start) first++
    if (line.trim() !== '') lines.push({ start, pieces: toPieces(text, start, end, ordered, first) })
    start = end + 1
  }
  return lines
}

function toPieces(text: string, start: number, end: number, marks: readonly Mark[], first: number): readonly Piece[] {
  const pieces: Piece[] = []
  let at = start
  for (let index = first; index < marks.length && marks[index]!.start < end; index++) {
    const from = Math.max(marks[index]!.start, start)
    const to = Math.min(marks[index]!.end, end)
    if (from > at) pieces.push({ text: text.slice(at, from), isMarked: false })
    pieces.push({ text: text.slice(from, to), isMarked: true })
    at = to
  }
  if (at < end) pieces.push({ text: text.slice(at, end), isMarked: false })
  return pieces
}
