import type { ProtocolObject } from '../../ports/engines.ts'

/** The last event of a transcript, which has the whole text. */
export const TRANSCRIPT_DONE = 'transcript.text.done'
const TRANSCRIPT_DELTA = 'transcript.text.delta'
const TRANSCRIPT_SEGMENT = 'transcript.text.segment'

/**
 * The events of an answer that came as a whole: its text, or its segments if they name speakers. `done` is the last
 * event.
 */
export function eventsOfResponse({ segments, ...facts }: ProtocolObject): {
  readonly before: readonly ProtocolObject[]
  readonly done: ProtocolObject
} {
  const spoken = Array.isArray(segments) && segments.map((segment: ProtocolObject) => ({ ...segment, type: TRANSCRIPT_SEGMENT }))
  return {
    before: spoken || (typeof facts.text === 'string' ? [{ type: TRANSCRIPT_DELTA, delta: facts.text }] : []),
    done: { type: TRANSCRIPT_DONE, ...facts },
  }
}

/** The text that the events add. Segments repeat the deltas' text, or replace them. */
export function readTextDelta(events: readonly ProtocolObject[]): string {
  return events.map(({ type, delta }) => (type === TRANSCRIPT_DELTA && typeof delta === 'string' ? delta : '')).join('')
}
