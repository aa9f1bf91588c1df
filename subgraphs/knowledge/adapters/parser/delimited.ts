const DELIMITERS = [',', '\t', ';', '|']
/** Lines that determine the delimiter. */
const SAMPLE_LINES = 50

/** Returns the delimiter that splits most of the first lines into the same number of cells. */
export function findDelimiter(text: string): string {
  return DELIMITERS.map((delimiter) => ({ delimiter, ...measureShape(text, delimiter) })).sort(
    (a, b) => b.alike - a.alike || b.columns - a.columns,
  )[0]!.delimiter
}

/** Counts the first rows with the most frequent number of cells, if that number is more than one. */
export function measureShape(text: string, delimiter: string): { readonly alike: number; readonly columns: number; readonly rows: number } {
  const counts = new Map<number, number>()
  let rows = 0
  for (const row of readRecords(text.slice(0, 64 * 1024), delimiter)) {
    if (rows >= SAMPLE_LINES) break
    if (row.length === 1 && row[0] === '') continue
    rows += 1
    if (row.length > 1) counts.set(row.length, (counts.get(row.length) ?? 0) + 1)
  }
  const [columns = 1, alike = 0] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? []
  return { alike, columns, rows }
}

/** Yields the cells of each row. A quote without a closing quote is an ordinary character. */
export function* readRecords(text: string, delimiter: string): Generator<readonly string[]> {
  const lastQuote = text.lastIndexOf('"')
  let row: string[] = []
  let at = 0
  while (at < text.length) {
    let cell: string
    if (text[at] === '"' && at < lastQuote) {
      let end = at + 1
      const parts: string[] = []
      for (;;) {
        const quote = text.indexOf('"', end)
        if (quote < 0) {
          parts.push(text.slice(end))
          end = text.length
          break
        }
        parts.push(text.slice(end, quote))
        end = quote + 1
        if (text[end] !== '"') break
        parts.push('"')
        end += 1
      }
      at = endOfCell(text, end, delimiter)
      cell = parts.join('') + text.slice(end, at)
    } else {
      const start = at
      at = endOfCell(text, start, delimiter)
      cell = text.slice(start, at)
    }
    row.push(cell)
    if (text[at] === delimiter) {
      at += 1
      if (at === text.length) row.push('')
      continue
    }
    at += text[at] === '\r' && text[at + 1] === '\n' ? 2 : 1
    yield row
    row = []
  }
  if (row.length > 0) yield row
}

function endOfCell(text: string, from: number, delimiter: string): number {
  let end = from
  while (end < text.length && text[end] !== delimiter && text[end] !== '\n' && text[end] !== '\r') end += 1
  return end
}
