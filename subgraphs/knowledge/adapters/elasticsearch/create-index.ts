import type { Client, estypes } from '@elastic/elasticsearch'
import { awaitResponse, toFailure } from './client.ts'

/** Within the time of a request. */
const SERVES_WITHIN = '9s'

/**
 * Creates an index unless it exists, as another process may be doing the same. Resolves once it can be searched: a search
 * of several indices fails while one of them cannot.
 * @throws {ServiceUnavailable} it cannot within 9 s
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
