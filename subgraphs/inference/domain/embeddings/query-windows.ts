/**
 * Most windows of one query. The longest query, of 8,192 characters, has fewer tokens than this many windows of 512,
 * even with one token for each character.
 */
export const MAX_WINDOWS = 32

/**
 * Cuts a text into `count` parts of about the same length, between words where possible. Returns fewer parts if the
 * text has fewer characters.
 */
export function cutIntoWindows(text: string, count: number): readonly string[] {
  const windows: string[] = []
  const size = Math.ceil(text.length / count)
  for (let start = 0; start < text.length; ) {
    const end = start + size >= text.length ? text.length : endOfWindow(text, start, start + size)
    const window = text.slice(start, end).trim()
    if (window !== '') windows.push(window)
    start = end
  }
  return windows
}

/** The mean direction, of norm 1. Vectors that cancel each other out have none: then the first vector is returned. */
export function meanDirection(vectors: readonly Float32Array[]): Float32Array {
  const [first] = vectors
  const sum = new Float32Array(first!.length)
  for (const vector of vectors) for (const [index, component] of vector.entries()) sum[index]! += component
  const length = Math.hypot(...sum)
  return length > 0 ? sum.map((component) => component / length) : first!
}

/** The last space in the second half of the window, or else the window's end, which splits no character. */
function endOfWindow(text: string, start: number, end: number): number {
  const space = text.lastIndexOf(' ', end)
  if (space > (start + end) / 2) return space
  const isLowSurrogate = text.charCodeAt(end) >= 0xdc00 && text.charCodeAt(end) <= 0xdfff
  return isLowSurrogate ? end + 1 : end
}
