import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import { NotFound } from '../../../subgraphs/common/errors.ts'
import * as operations from '../../contract/evaluations.ts'
import { deleted, type JsonObject, ok, type Route, route } from '../../http/route.ts'
import { unixSeconds, unixSecondsOrNull } from '../../http/values.ts'
import { toSettings, toSettingsInput } from './evaluations.ts'

const WATCH = `collectionId minIntervalSeconds maxFall apiKeyId changes { added replaced deleted updated settings }
  settings { label mode filter rerankModel lexicalWeight } startedAt error { code message } createdAt`

type WatchData = Selected<'EvaluationWatch', typeof WATCH>

const SET = gatewayOperation(
  `mutation SetEvaluationWatch($input: SetEvaluationWatchInput!) { setEvaluationWatch(input: $input) { watch { ${WATCH} } } }`,
)
const GET = gatewayOperation(`query EvaluationWatch($id: ID!) { collection(id: $id) { evaluationWatch { ${WATCH} } } }`)
const DELETE = gatewayOperation(
  'mutation DeleteEvaluationWatch($collectionId: ID!) { deleteEvaluationWatch(collectionId: $collectionId) { id } }',
)

const NAMES = { collectionId: 'id', minIntervalSeconds: 'min_interval_seconds', maxFall: 'max_fall' }

function toWatch(watch: WatchData): operations.EvaluationWatch {
  return {
    object: 'evaluation_watch',
    created_at: unixSeconds(watch.createdAt),
    collection_id: watch.collectionId,
    settings: watch.settings.map(toSettings),
    min_interval_seconds: watch.minIntervalSeconds,
    max_fall: watch.maxFall,
    key_id: watch.apiKeyId,
    changes: watch.changes,
    started_at: unixSecondsOrNull(watch.startedAt),
    error: watch.error,
  }
}

export const evaluationWatchRoutes: readonly Route[] = [
  route({
    operation: operations.setEvaluationWatch,
    async handle({ execute, params, body }) {
      const settings = (body.settings as readonly JsonObject[] | undefined)?.map(toSettingsInput)
      const { min_interval_seconds: minIntervalSeconds, max_fall: maxFall } = body
      const input = { collectionId: params.id, settings, minIntervalSeconds, maxFall }
      const { setEvaluationWatch } = await execute(SET, { input }, NAMES)
      return ok(toWatch(setEvaluationWatch.watch))
    },
  }),
  route({
    operation: operations.getEvaluationWatch,
    async handle({ execute, params }) {
      const { collection } = await execute(GET, { id: params.id })
      if (!collection) throw new NotFound('collection', params.id!)
      if (!collection.evaluationWatch) throw new NotFound('watch of collection', params.id!)
      return ok(toWatch(collection.evaluationWatch))
    },
  }),
  route({
    operation: operations.deleteEvaluationWatch,
    async handle({ execute, params }) {
      const { deleteEvaluationWatch } = await execute(DELETE, { collectionId: params.id }, NAMES)
      return deleted('evaluation_watch', deleteEvaluationWatch.id)
    },
  }),
]
