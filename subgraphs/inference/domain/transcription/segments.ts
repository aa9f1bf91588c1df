import type { ProtocolObject } from '../../ports/engines.ts'
import { MAX_AUDIO_MS } from './audio-length.ts'

/** A piece of a transcript, in seconds from the start. */
export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The segments of an engine's response. Null: it has none, or an impossible one. */
export function readSegments({ segments }: ProtocolObject): readonly Segment[] | null {
  return Array.isArray(segments) && segments.every(isSegment) ? segments : null
}

function isSegment(value: unknown): value is Segment {
  const { start, end, text } = (value ?? {}) as { readonly [Field in keyof Segment]?: unknown }
  if (typeof start !== 'number' || typeof end !== 'number' || typeof text !== 'string') return false
  return start >= 0 && end >= start && end * 1_000 <= MAX_AUDIO_MS
}
