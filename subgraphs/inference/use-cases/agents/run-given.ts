import { type AgentDefinition, readDefinition, storedDefinition } from '../../domain/agents/definition.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Ports } from '../deps.ts'
import type { RunGivenRecord } from '../tables.ts'

/** UTF-16 characters of one piece: at most 12 MB of UTF-8, below the 16 MB of a document of the store. */
const PIECE_CHARACTERS = 4_000_000
/** More than a request can have. */
const MAX_PIECES = 20
/** A run is over long before. */
const KEPT_MS = 86_400_000

/** What a run begins with. It is kept until the run has ended, so that another process can go on with it. */
export interface GivenToRun {
  /** The agent as this run has it. */
  readonly agent: AgentDefinition
  /** The conversation, the question last; images with their bytes. */
  readonly messages: readonly ProtocolObject[]
  /** The run makes its thread; a thread that is gone when the run ends was deleted. */
  readonly beginsThread: boolean
}

export async function keepGiven(
  { collections, clock }: Pick<Ports, 'collections' | 'clock'>,
  runId: string,
  given: GivenToRun,
): Promise<void> {
  const text = JSON.stringify({ ...given, agent: storedDefinition(given.agent) })
  const expiresAt = new Date(clock.now().getTime() + KEPT_MS)
  const pieces: RunGivenRecord[] = []
  for (let start = 0; start < text.length; start += PIECE_CHARACTERS) {
    const piece = pieces.length
    pieces.push({ _id: `${runId}_${piece}`, runId, piece, text: text.slice(start, start + PIECE_CHARACTERS), expiresAt })
  }
  await collections.runGiven.insertMissing(pieces)
}

/** Null: the run has ended, and what it was given is forgotten. */
export async function readGiven({ collections }: Pick<Ports, 'collections'>, runId: string): Promise<GivenToRun | null> {
  const pieces = await collections.runGiven.find({ runId }, { sort: { piece: 1 }, limit: MAX_PIECES })
  if (pieces.length === 0) return null
  const given = JSON.parse(pieces.map(({ text }) => text).join(''))
  return { ...given, agent: readDefinition(given.agent) }
}

/** Repeatable. */
export async function forgetGiven({ collections }: Pick<Ports, 'collections'>, runId: string): Promise<void> {
  await collections.runGiven.deleteMany({ runId })
}

/** Of runs that were never begun, at most 1,000 a call. */
export async function removeExpiredGiven({ collections, clock }: Pick<Ports, 'collections' | 'clock'>): Promise<void> {
  await collections.runGiven.deleteMany({ expiresAt: { $lt: clock.now() } })
}
