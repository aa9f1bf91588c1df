import { type AgentDefinition, readDefinition, storedDefinition } from '../../domain/agents/definition.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Ports } from '../deps.ts'
import type { RunGivenRecord } from '../tables.ts'

/** UTF-16 characters of one piece: at most 12 MB of UTF-8, below the 16 MB of a document of the store. */
const PIECE_CHARACTERS = 4_000_000
/** More pieces than any request can fill. */
const MAX_PIECES = 20
/** How long the input of a run is kept at most; every run ends long before. */
const KEPT_MS = 86_400_000

/** The input of a run. It is kept until the run has ended, so that another process can continue the run. */
export interface GivenToRun {
  /** The agent's definition with the fields that this run overrides. */
  readonly agent: AgentDefinition
  /** The conversation with the question last. Images have their bytes. */
  readonly messages: readonly ProtocolObject[]
  /** The run creates its thread. Otherwise, a thread that is missing when the run ends was deleted. */
  readonly beginsThread: boolean
  /** The mark of the first passage that the run shows. */
  readonly firstMark: number
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

/** Returns the input of a run, or null when the run has ended and its input is deleted. */
export async function readGiven({ collections }: Pick<Ports, 'collections'>, runId: string): Promise<GivenToRun | null> {
  const pieces = await collections.runGiven.find({ runId }, { sort: { piece: 1 }, limit: MAX_PIECES })
  if (pieces.length === 0) return null
  const given = JSON.parse(pieces.map(({ text }) => text).join(''))
  // Runs of earlier versions began at 1.
  return { firstMark: 1, ...given, agent: readDefinition(given.agent) }
}

/** Deletes the input of a run. Can be repeated. */
export async function forgetGiven({ collections }: Pick<Ports, 'collections'>, runId: string): Promise<void> {
  await collections.runGiven.deleteMany({ runId })
}

/** Deletes the input of runs that never started, at most 1,000 records per call. */
export async function removeExpiredGiven({ collections, clock }: Pick<Ports, 'collections' | 'clock'>): Promise<void> {
  await collections.runGiven.deleteMany({ expiresAt: { $lt: clock.now() } })
}
