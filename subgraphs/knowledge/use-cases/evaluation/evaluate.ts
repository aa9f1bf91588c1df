import { KisError, OrganizationSuspended } from '../../../common/errors.ts'
import { reportChange } from '../../../common/events/event-log.ts'
import type { Update } from '../../../common/ports/document-store.ts'
import { type Ranks, rankExpected } from '../../domain/evaluation/ranks.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import type { EvaluatedQuestion, EvaluatedSettings, EvaluationRecord } from '../../domain/records.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { LeaseLost } from '../documents/lease-lost.ts'
import { mayRepeat } from '../may-repeat.ts'
import { searchCollection } from '../search/search-collection.ts'
import { compareEvaluation } from './compare-evaluation.ts'
import { describeFall } from './evaluation-events.ts'

/** Hits that a search returns: the ranks of passages behind them are not known. */
const HITS = 50
/** Questions between two writes of the progress. */
const STEP = 10

type EvaluateDeps = Pick<Deps, 'store' | 'index' | 'inference' | 'accounts' | 'events' | 'clock'>

/**
 * Asks the questions of an evaluation that have not been asked, and ends it. An error that a repeat cannot help ends it
 * too. Each search is paid once, also when a process dies and the question is asked again.
 * @throws {LeaseLost} if the evaluation was deleted, or another worker has it.
 * @throws any other error after which the job is repeated; the questions asked so far are kept.
 */
export async function evaluate(deps: EvaluateDeps, evaluation: EvaluationRecord, signal: AbortSignal): Promise<void> {
  const questions = JSON.parse(evaluation.questions) as readonly EvaluatedQuestion[]
  const settings = JSON.parse(evaluation.settings) as readonly EvaluatedSettings[]
  const ranks = JSON.parse(evaluation.ranks) as (readonly Ranks[])[]
  let cost = BigInt(evaluation.cost)
  const progress = () => ({ ranks: JSON.stringify(ranks), done: ranks.length, cost: String(cost) })
  try {
    for (const question of questions.slice(ranks.length)) {
      signal.throwIfAborted()
      const context = await callContext(deps, evaluation, signal)
      const result = await runQuestion(deps, context, evaluation, question, settings)
      await requireIndex(deps, evaluation)
      ranks.push(result.ranks)
      cost += result.cost
      if (ranks.length % STEP === 0) await write(deps, evaluation, { $set: progress() })
    }
  } catch (error) {
    if (error instanceof LeaseLost || signal.aborted) throw error
    await write(deps, evaluation, { $set: progress() })
    if (mayRepeat(error)) throw error
    return failEvaluation(deps, evaluation, error)
  }
  await complete(deps, { ...evaluation, ...progress() })
}

/** Ends an evaluation whose questions have all been asked. One that a watch has started is compared with the one before. */
async function complete(deps: EvaluateDeps, evaluation: EvaluationRecord): Promise<void> {
  const { ranks, done, cost, changes, collectionId, organizationId, maxFallThousandths: maxFall } = evaluation
  const comparison = changes ? await compareEvaluation(deps, evaluation, (maxFall ?? 1_000) / 1_000) : null
  const endedAt = deps.clock.now()
  const isReported = maxFall !== undefined && comparison !== null && comparison.falls.length > 0
  const report = isReported ? reportChange(organizationId, endedAt, describeFall(collectionId, comparison)) : null
  const compared = comparison && { comparison: JSON.stringify(comparison) }
  await write(deps, evaluation, {
    $set: { status: 'completed', endedAt, ranks, done, cost, ...compared, ...report?.$set },
    $unset: { job: '', openKey: '' },
    ...(report && { $push: report.$push }),
  })
  if (report) deps.events.kick(organizationId)
}

/** Ends an evaluation that cannot go on. */
export async function failEvaluation(deps: Pick<Deps, 'store' | 'clock'>, evaluation: EvaluationRecord, reason: unknown): Promise<void> {
  const error =
    reason instanceof KisError
      ? { code: reason.code, message: reason.message }
      : { code: 'internal', message: 'The service failed to evaluate the collection.' }
  const ended = { status: 'failed', error, endedAt: deps.clock.now() }
  await write(deps, evaluation, { $set: ended, $unset: { job: '', openKey: '' } })
}

async function runQuestion(
  deps: EvaluateDeps,
  context: CallContext,
  { _id, collectionId }: EvaluationRecord,
  { id, query, expected }: EvaluatedQuestion,
  settings: readonly EvaluatedSettings[],
): Promise<{ readonly ranks: readonly Ranks[]; readonly cost: bigint }> {
  const ranks: Ranks[] = []
  let cost = 0n
  for (const [i, { label: _label, ...search }] of settings.entries()) {
    const step = `${_id}/${id}/${i}`
    const result = await searchCollection(deps, { ...context, step }, { collectionId, query, ...search, limit: HITS })
    // A search answers without its reranker if that fails. The scores would then be those of other settings.
    if (result.rerank?.error) throw new KisError(result.rerank.error, `The rerank model \`${result.rerank.modelId}\` failed.`)
    const chunks = result.hits.map(({ chunk, document, ranked }) => ({ ...chunk, ...ranked, fileName: document.fileName }))
    ranks.push(rankExpected(expected, chunks))
    cost += result.cost
  }
  return { ranks, cost }
}

/**
 * Scores of two models do not compare.
 * @throws {KisError} `in_use` if the collection has another embedding model than when the evaluation began.
 */
async function requireIndex({ store }: EvaluateDeps, { organizationId, collectionId, indexName }: EvaluationRecord): Promise<void> {
  const collection = await getCollection({ store }, organizationId, collectionId)
  if (indexName === undefined || indexNameOf(collection) === indexName) return
  throw new KisError('in_use', 'The collection got another embedding model during the evaluation. Start the evaluation again.')
}

/** Returns the context of the key that started the evaluation, with its current rules. */
async function callContext({ accounts }: EvaluateDeps, { _id, organizationId, apiKeyId }: EvaluationRecord, signal: AbortSignal) {
  const caller = await accounts.findPrincipal(organizationId, apiKeyId, signal)
  if (!caller) throw new LeaseLost()
  if (caller.isSuspended) throw new OrganizationSuspended()
  return { caller, requestId: _id, signal }
}

/** @throws {LeaseLost} if the evaluation was deleted, or another worker has it. */
async function write({ store }: Pick<Deps, 'store'>, { _id, job }: EvaluationRecord, update: Update): Promise<void> {
  if (!(await store.evaluations.findOneAndUpdate({ _id, 'job.lease': job!.lease }, update))) throw new LeaseLost()
}
