export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly text: string
}

/** Most pairs of lines that are compared. Beyond it, all lines between the first and the last change count as changed. */
const MAX_PAIRS = 1_000_000

/** What changed between two texts, line by line. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, fresh] = [linesOf(before), linesOf(after)]
  const least = Math.min(old.length, fresh.length)
  let head = 0
  while (head < least && old[head] === fresh[head]) head++
  let tail = 0
  while (tail < least - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++
  const lines = (kind: DiffLine['kind'], texts: readonly string[]) => texts.map((text) => ({ kind, text }))
  return [
    ...lines('same', old.slice(0, head)),
    ...between(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...lines('same', old.slice(old.length - tail)),
  ]
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n')
}

/** Keeps the longest list of lines that both have in the same order. */
function between(old: readonly string[], fresh: readonly string[]): readonly DiffLine[] {
  const width = fresh.length + 1
  const kept = new Uint32Array(old.length * fresh.length > MAX_PAIRS ? 0 : (old.length + 1) * width)
  if (kept.length > 0) {
    for (let i = old.length - 1; i >= 0; i--) {
      for (let j = fresh.length - 1; j >= 0; j--) {
        kept[i * width + j] =
          old[i] === fresh[j] ? kept[(i + 1) * width + j + 1]! + 1 : Math.max(kept[(i + 1) * width + j]!, kept[i * width + j + 1]!)
      }
    }
  }
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < fresh.length) {
    if (kept.length > 0 && i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ kind: 'same', text: old[i]! })
      i++
      j++
    } else if (i < old.length && (j === fresh.length || kept.length === 0 || kept[(i + 1) * width + j]! >= kept[i * width + j + 1]!)) {
      lines.push({ kind: 'removed', text: old[i++]! })
    } else lines.push({ kind: 'added', text: fresh[j++]! })
  }
  return lines
}
