import type { Segment } from './segments.ts'

/** SubRip: numbered from 1, with a comma before the milliseconds. */
export function toSrt(segments: readonly Segment[]): string {
  return segments.map((segment, index) => `${index + 1}\n${cue(segment, ',')}\n`).join('\n')
}

/** WebVTT (W3C, section 4.1): with a point before the milliseconds. */
export function toVtt(segments: readonly Segment[]): string {
  // In a text, `-->` would be read as a timing line, and `<` as a tag.
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return ['WEBVTT\n', ...segments.map((segment) => `${cue({ ...segment, text: escaped(segment.text) }, '.')}\n`)].join('\n')
}

function cue({ start, end, text }: Segment, separator: string): string {
  // An empty line would end the cue.
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n')
  return `${stamp(start, separator)} --> ${stamp(end, separator)}\n${lines}`
}

function stamp(seconds: number, separator: string): string {
  const ms = Math.round(seconds * 1_000)
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1_000) % 60)}${separator}${String(ms % 1_000).padStart(3, '0')}`
}
