import type { Client, estypes } from '@elastic/elasticsearch'
import { awaitResponse, toFailure } from './client.ts'

/** Less than the time limit of a request. */
const SERVES_WITHIN = '9s'

/**
 * Creates an index unless it exists, because another process may be creating it. Resolves once it is searchable: a
 * search of several indices fails while one of them is not.
 * @throws {ServiceUnavailable} it is not searchable within 9 s
 */
export async function createIndex(client: Client, request: estypes.IndicesCreateRequest): Promise<void> {
  const { index } = request
  const { error } = (await awaitResponse(
    client.indices.create({ ...request, wait_for_active_shards: 0 }, { ignore: [400] }),
  )) as Partial<estypes.ErrorResponseBase>
  const type = error?.type ?? 'resource_already_exists_exception'
  if (type !== 'resource_already_exists_exception') throw toFailure(400, `index ${index} cannot be created, ${type}`)
  await awaitResponse(client.cluster.health({ index, wait_for_status: 'yellow', timeout: SERVES_WITHIN }))
}
