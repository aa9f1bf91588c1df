import type { ProtocolObject } from '../../ports/engines.ts'

/** Type of the last event of a transcript, which has all of the text. */
export const TRANSCRIPT_DONE = 'transcript.text.done'
const TRANSCRIPT_DELTA = 'transcript.text.delta'
const TRANSCRIPT_SEGMENT = 'transcript.text.segment'

/** The protocol's events of an answer that came whole: its text or, where it says who spoke, its segments; `done` is the last event. */
export function eventsOfAnswer({ segments, ...facts }: ProtocolObject): {
  readonly before: readonly ProtocolObject[]
  readonly done: ProtocolObject
} {
  const spoken = Array.isArray(segments) && segments.map((segment: ProtocolObject) => ({ ...segment, type: TRANSCRIPT_SEGMENT }))
  return {
    before: spoken || (typeof facts.text === 'string' ? [{ type: TRANSCRIPT_DELTA, delta: facts.text }] : []),
    done: { type: TRANSCRIPT_DONE, ...facts },
  }
}

/** Text that the events add. Segments repeat what deltas have said, or stand for them. */
export function textDeltaOf(events: readonly ProtocolObject[]): string {
  return events.map(({ type, delta }) => (type === TRANSCRIPT_DELTA && typeof delta === 'string' ? delta : '')).join('')
}
