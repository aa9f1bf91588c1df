import { type AgentDefinition, readDefinition, storedDefinition } from '../../domain/agents/definition.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Ports } from '../deps.ts'
import type { RunInputRecord } from '../tables.ts'

/** UTF-16 characters of one piece: at most 12 MB of UTF-8, below the store's limit of 16 MB per document. */
const PIECE_CHARACTERS = 4_000_000
/** More pieces than any request can fill. */
const MAX_PIECES = 20
/** How long the input of a run is stored at most; every run ends long before. */
const RETENTION_MS = 86_400_000

/** The input of a run. It is stored until the run has ended, so that another process can continue the run. */
export interface StoredRunInput {
  /** The agent's definition with the fields that this run overrides. */
  readonly agent: AgentDefinition
  /** The conversation with the question last. Images include their bytes. */
  readonly messages: readonly ProtocolObject[]
  /** The run creates its thread. If false and the thread is missing when the run ends, the thread was deleted. */
  readonly beginsThread: boolean
  /** The mark of the first chunk that the run shows. */
  readonly firstMark: number
}

/** Stores the input of a run in pieces. Can be repeated. */
export async function storeRunInput(
  { collections, clock }: Pick<Ports, 'collections' | 'clock'>,
  runId: string,
  storedInput: StoredRunInput,
): Promise<void> {
  const text = JSON.stringify({ ...storedInput, agent: storedDefinition(storedInput.agent) })
  const expiresAt = new Date(clock.now().getTime() + RETENTION_MS)
  const pieces: RunInputRecord[] = []
  for (let start = 0; start < text.length; start += PIECE_CHARACTERS) {
    const piece = pieces.length
    pieces.push({ _id: `${runId}_${piece}`, runId, piece, text: text.slice(start, start + PIECE_CHARACTERS), expiresAt })
  }
  await collections.runInputs.insertMissing(pieces)
}

/** Returns the input of a run, or null when the run has ended and its input is deleted. */
export async function readRunInput({ collections }: Pick<Ports, 'collections'>, runId: string): Promise<StoredRunInput | null> {
  const pieces = await collections.runInputs.find({ runId }, { sort: { piece: 1 }, limit: MAX_PIECES })
  if (pieces.length === 0) return null
  const storedInput = JSON.parse(pieces.map(({ text }) => text).join(''))
  // Marks of earlier versions' runs started at 1.
  return { firstMark: 1, ...storedInput, agent: readDefinition(storedInput.agent) }
}

/** Deletes the input of a run. Can be repeated. */
export async function deleteRunInput({ collections }: Pick<Ports, 'collections'>, runId: string): Promise<void> {
  await collections.runInputs.deleteMany({ runId })
}

/** Deletes the input of runs that never started, at most 1,000 records per call. */
export async function deleteExpiredRunInputs({ collections, clock }: Pick<Ports, 'collections' | 'clock'>): Promise<void> {
  await collections.runInputs.deleteMany({ expiresAt: { $lt: clock.now() } })
}
