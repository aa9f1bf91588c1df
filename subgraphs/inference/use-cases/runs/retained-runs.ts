import type { Ports, With } from '../deps.ts'
import type { RunBase } from '../tables.ts'
import type { RunKind } from './run-kind.ts'
import type { RunEventBase } from './run-log.ts'

/**
 * Characters that the ended runs of one kind of an organization may take: their records, events and kept answers. The
 * oldest runs are deleted first. No other quota counts them, and a run that fails may cost nothing.
 */
export const MAX_RETAINED_CHARACTERS = 512 * 1024 ** 2
/** Most runs that the end of one run deletes. */
const MAX_DELETED = 1_000
const PAGE = 100

/** Returns the fields of a run that ends now and takes this many characters: its place among the ended runs. */
export async function positionAtEnd(
  { collections }: Pick<Ports, 'collections'>,
  organizationId: string,
  noun: 'agent' | 'workflow',
  characters: number,
): Promise<{ readonly keptOf: string; readonly keptAt: number }> {
  const total = await collections.retainedRuns.findOneAndUpdate(
    { _id: `${organizationId}_${noun}` },
    { $inc: { characters } },
    { upsert: true },
  )
  return { keptOf: organizationId, keptAt: total!.characters }
}

/** Deletes the organization's oldest runs, which have no room since this run has ended. Can be repeated. */
export async function deleteSurplus<Run extends RunBase, Event extends RunEventBase>(
  deps: With<'runEnds'>,
  kind: RunKind<Run, Event>,
  { keptOf, keptAt }: RunBase,
): Promise<void> {
  if (keptOf === undefined || keptAt === undefined || keptAt <= MAX_RETAINED_CHARACTERS) return
  const surplus = { keptOf, keptAt: { $lte: keptAt - MAX_RETAINED_CHARACTERS } }
  for (let deleted = 0; deleted < MAX_DELETED; deleted += PAGE) {
    const page = await kind.records.find(surplus, { sort: { keptAt: 1 }, limit: PAGE })
    // The events of the runs' ends are delivered before the runs are deleted.
    if (page.length > 0) await deps.runEnds.drain(keptOf)
    for (const { _id } of page) await purgeRun(deps, kind, _id)
    if (page.length < PAGE) return
  }
}

/** Deletes an ended run with its events and the answers of its calls. Can be repeated. */
export async function purgeRun<Run extends RunBase, Event extends RunEventBase>(
  { collections }: Pick<Ports, 'collections'>,
  kind: RunKind<Run, Event>,
  runId: string,
): Promise<void> {
  const { runEvents, keyedCalls } = collections
  while ((await runEvents.deleteMany({ runId })) > 0);
  while ((await keyedCalls.deleteMany({ 'step.runId': runId })) > 0);
  await kind.deleteInput(runId)
  await kind.records.findOneAndDelete({ _id: runId })
}
