import { checkInteger, checkNumber } from '../../../common/check.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { NO_CHANGES } from '../../domain/evaluation/changes.ts'
import type { CollectionRecord, EvaluationWatchRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { checkSettings, requireEvaluator, type SettingsInput } from './evaluations.ts'

/** Maximum watches per organization. Each may pay for one evaluation per hour. */
const MAX_WATCHES = 100
export const MIN_INTERVAL_SECONDS = 3_600
const MAX_INTERVAL_SECONDS = 30 * 86_400
const DEFAULT_INTERVAL_SECONDS = 86_400
/** A smaller decrease is one result among hundreds, which any new document may cause. */
const MIN_FALL = 0.01
const DEFAULT_FALL = 0.05

export interface WatchInput {
  readonly collectionId: string
  readonly settings?: readonly SettingsInput[] | null
  readonly minIntervalSeconds?: number | null
  /** Null: no event. Absent: 0.05. */
  readonly maxFall?: number | null
}

/**
 * Creates or changes the watch of a collection, which evaluates it after changes. The caller's key pays from now on, by
 * its current rules. Changes already counted stay counted.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `invalid_request` and similar codes, with the path, if the input is invalid.
 * @throws {KisError} `storage_quota_exceeded` if the organization has the maximum number of watches.
 */
export async function setWatch(
  deps: Pick<Deps, 'store' | 'events' | 'clock'>,
  context: LinkContext,
  input: WatchInput,
): Promise<EvaluationWatchRecord> {
  const { store, events, clock } = deps
  const { organizationId, apiKeyId } = requireEvaluator(context)
  const settings = JSON.stringify(checkSettings(input.collectionId, input.settings ?? [{}]))
  const minIntervalSeconds = input.minIntervalSeconds ?? DEFAULT_INTERVAL_SECONDS
  checkInteger(minIntervalSeconds, 'input.minIntervalSeconds', MIN_INTERVAL_SECONDS, MAX_INTERVAL_SECONDS)
  const { maxFall = DEFAULT_FALL } = input
  checkNumber(maxFall, 'input.maxFall', MIN_FALL, 1)
  const { _id: collectionId } = await getCollection(deps, organizationId, input.collectionId, 'input.collectionId')
  const key = { _id: collectionId, organizationId }
  if (!(await store.evaluationWatches.findOne(key)) && (await store.evaluationWatches.countDocuments({ organizationId })) >= MAX_WATCHES)
    throw new KisError('storage_quota_exceeded', `An organization has at most ${MAX_WATCHES} watches of evaluations. Delete one first.`)
  // Documents that became ready before the watch are not changes.
  await events.drain(organizationId)
  const position = (await events.ends([organizationId])).get(organizationId) ?? 0
  const maxFallThousandths = maxFall === null ? null : Math.round(maxFall * 1_000)
  const first = { collectionId, position, changes: { ...NO_CHANGES }, seen: 0, changedAt: null, waitingSince: null, startedAt: null }
  const watch = await store.evaluationWatches.findOneAndUpdate(
    key,
    {
      $set: { apiKeyId, settings, minIntervalSeconds, maxFallThousandths, error: null },
      $setOnInsert: { ...first, createdAt: clock.now() },
    },
    { upsert: true },
  )
  return watch!
}

/**
 * Deletes the watch of a collection.
 * @throws {NotFound} if the organization has no such collection, or the collection is not watched.
 */
export async function deleteWatch({ store }: Pick<Deps, 'store'>, context: LinkContext, collectionId: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const deleted = await store.evaluationWatches.findOneAndDelete({ _id: collectionId, organizationId })
  if (!deleted) throw new NotFound('watch of collection', collectionId)
}

/**
 * Returns the watch of a collection. Null: the collection is not watched. Access is not checked: only a caller that may
 * read the collection has its record.
 */
export function findWatch(
  { store }: Pick<Deps, 'store'>,
  { _id, organizationId }: CollectionRecord,
): Promise<EvaluationWatchRecord | null> {
  return store.evaluationWatches.findOne({ _id, organizationId })
}
