/** A line of two texts: in both, or in one. Lines count from 1. */
interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
  readonly before: number | null
  readonly after: number | null
}

/**
 * Most cells of the comparison table. Above it, everything between the first and the last change counts as replaced.
 */
const MAX_CELLS = 4_000_000

/** Returns the changed and the unchanged lines between two texts. An empty text has no lines. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++

  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  const same = () => lines.push({ kind: 'same', text: a[i]!, before: ++i, after: ++j })
  const remove = () => lines.push({ kind: 'removed', text: a[i]!, before: ++i, after: null })
  const add = () => lines.push({ kind: 'added', text: b[j]!, before: null, after: ++j })
  while (i < start) same()
  const [lastA, lastB] = [a.length - end, b.length - end]
  const lengths = commonLengths(a.slice(start, lastA), b.slice(start, lastB))
  while (i < lastA || j < lastB) {
    if (lengths && i < lastA && j < lastB && a[i] === b[j]) same()
    else if (i < lastA && (!lengths || j === lastB || lengths(i + 1 - start, j - start) >= lengths(i - start, j + 1 - start))) remove()
    else add()
  }
  while (i < a.length) same()
  return lines
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n')
}

/**
 * Returns how many lines two texts have in common, in order, from a line of each on. Null: the texts are too large to
 * compare.
 */
function commonLengths(a: readonly string[], b: readonly string[]): ((i: number, j: number) => number) | null {
  const width = b.length + 1
  if ((a.length + 1) * width > MAX_CELLS) return null
  const lengths = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j] ? lengths[(i + 1) * width + j + 1]! + 1 : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!)
    }
  }
  return (i, j) => lengths[i * width + j]!
}

/** Returns the changes with the lines around them. A number stands for that many omitted lines. */
export function foldSame(lines: readonly DiffLine[], around = 3): readonly (DiffLine | number)[] {
  const near = new Set(
    lines.flatMap(({ kind }, i) => (kind === 'same' ? [] : Array.from({ length: 2 * around + 1 }, (_, k) => i - around + k))),
  )
  const folded: (DiffLine | number)[] = []
  for (const [i, line] of lines.entries()) {
    const last = folded.at(-1)
    if (near.has(i)) folded.push(line)
    else if (typeof last === 'number') folded[folded.length - 1] = last + 1
    else folded.push(1)
  }
  return folded
}
