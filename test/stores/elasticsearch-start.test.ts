import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Installation } from '../../subgraphs/common/identity/installation.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { Unfit } from '../../subgraphs/common/process/opening.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'

const PASSWORD = 'correct-horse-battery'
const API_KEY = 'c2VjcmV0LWFwaS1rZXk='

/** What a start that is expected to fail says, everything that hangs on the error included. */
async function refusal(url: string, more: { readonly apiKey?: string; readonly prefix?: string } = {}): Promise<string> {
  try {
    await using index = await openElasticsearchChunkIndex({ url, ...more, size: { shards: 1, replicas: 0 }, log: silentLog })
    throw new Error(`it started: ${index}`)
  } catch (error) {
    expect(error).toBeInstanceOf(Unfit)
    const { message, stack, cause } = error as Error
    for (const secret of [PASSWORD, API_KEY, btoa(`kis:${PASSWORD}`)]) {
      expect(`${message} ${stack} ${String(cause)} ${JSON.stringify(error)}`).not.toContain(secret)
    }
    return message
  }
}

describe('Start on an unusable Elasticsearch', () => {
  let server: Server | undefined
  afterEach(() => server?.close())

  type ScriptedResponse = readonly [status: number, body: unknown]
  type ScriptedResponses = Readonly<Record<string, ScriptedResponse>>
  const ABSENT: ScriptedResponse = [404, { error: { type: 'index_not_found_exception' }, status: 404 }]

  /**
   * A server that answers as told by path, and 404 to anything else. A request with the media type of a client of version 9
   * gets `only`.
   */
  async function startServer(responses: ScriptedResponses, only: ScriptedResponse | null = null): Promise<string> {
    server = createServer((request, response) => {
      const isRefused = only !== null && request.headers.accept?.includes('compatible-with=9')
      const [status, body] = isRefused ? only : (responses[request.url!.split('?')[0]!] ?? ABSENT)
      response.writeHead(status, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' })
      response.end(JSON.stringify(body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://kis:${PASSWORD}@127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const root = (version: string) => [200, { version: { number: version }, tagline: 'You Know, for Search' }] as const

  it('reports that nothing responds', async () => {
    const url = await startServer({})
    server!.close()
    expect(await refusal(url)).toMatch(/^Elasticsearch does not respond as such: ConnectionError: .*ECONNREFUSED/)
  })

  it('reports wrong credentials', async () => {
    const url = await startServer({ '/': [401, { error: { type: 'security_exception', reason: `no user ${PASSWORD}` }, status: 401 }] })
    expect(await refusal(url)).toBe('Elasticsearch does not accept the credentials: status 401, security_exception')
    expect(await refusal(url, { apiKey: API_KEY })).toContain('status 401')
  })

  it('reports an old version, even if it refuses the media type of a newer client, as version 8 does', async () => {
    const reason =
      'A compatible version is required on both Content-Type and Accept headers if either one has requested a compatible version'
    const refused = [400, { error: { type: 'media_type_header_exception', reason }, status: 400 }] as const
    const url = await startServer({ '/': root('8.19.3') }, refused)
    expect(await refusal(url)).toBe('Elasticsearch is version 8.19.3, and 9.0 or newer is needed')
  })

  it('reports missing privileges, a foreign mapping and a blocked index, all at once', async () => {
    const said = await refusal(
      await startServer({
        '/': root('9.1.0'),
        '/_security/user/_has_privileges': [
          200,
          {
            username: 'kis',
            has_all_requested: false,
            cluster: {},
            application: {},
            index: { 'kis-chunks*': { read: true, write: false, create_index: false } },
          },
        ],
        '/kis-collections%2Ckis-chunks*/_mapping': [
          200,
          { 'kis-collections': { mappings: { dynamic: 'strict', properties: { dimensions: { type: 'text' } } } } },
        ],
        '/kis-collections%2Ckis-chunks*/_settings/index.blocks.*': [
          200,
          { 'kis-chunks-384-1': { settings: { 'index.blocks.read_only_allow_delete': 'true' } } },
        ],
      }),
    )
    expect(said.split('\n')).toEqual([
      'in Elasticsearch the user lacks the privileges write, create_index on kis-chunks*',
      "in Elasticsearch index kis-collections has a mapping that is not this service's: organization_id, dimensions",
      'in Elasticsearch index kis-chunks-384-1 is blocked by index.blocks.read_only_allow_delete',
    ])
  })
})

await onEngine(ELASTICSEARCH, 'Start on a running Elasticsearch', (url) => {
  describe('Start on a running Elasticsearch', () => {
    const { newPrefix, dropAll } = testIndices(url)
    afterAll(dropAll)
    const put = async (path: string, body: unknown) => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${url}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) })
      expect(response.status).toBe(200)
    }
    const open = (prefix: string) => openElasticsearchChunkIndex({ url, prefix, size: { shards: 1, replicas: 0 }, log: silentLog })

    it('reuses its own indices', async () => {
      const prefix = newPrefix()
      const collection = { organizationId: 'org_a', collectionId: 'col_a', dimensions: 8 }
      await using first = await open(prefix)
      await first.createCollection(collection)
      await using second = await open(prefix)
      await second.createCollection(collection)
      await second.ping(new AbortController().signal)
    })

    it('uses the indices of its own installation, and refuses those of another', async () => {
      const prefix = newPrefix()
      const own = { id: 'inst_own' }
      const openAs = (installation: Installation) =>
        openElasticsearchChunkIndex({
          url,
          prefix,
          installation: async () => installation,
          size: { shards: 1, replicas: 0 },
          log: silentLog,
        })
      // Indices of version 0.1.0 have no mark, and get one.
      await (await open(prefix))[Symbol.asyncDispose]()
      for (let start = 0; start < 2; start++) await (await openAs(own))[Symbol.asyncDispose]()
      await expect(openAs({ id: 'inst_other' })).rejects.toThrow(
        `The index ${prefix}-collections in Elasticsearch belongs to the installation inst_own`,
      )
    })

    it('refuses a foreign mapping and a read-only index together, and changes neither', async () => {
      const prefix = newPrefix()
      await put(`/${prefix}-collections`, { mappings: { properties: { title: { type: 'text' } } }, settings: { number_of_replicas: 0 } })
      await put(`/${prefix}-chunks-8-1`, {
        mappings: { dynamic: 'strict', properties: { vector: { type: 'dense_vector', dims: 16 } } },
        settings: { number_of_replicas: 0 },
      })
      await put(`/${prefix}-chunks-16`, { settings: { number_of_replicas: 0 } })
      await put(`/${prefix}-collections/_settings`, { 'index.blocks.write': true })
      const said = await refusal(url, { prefix })
      expect(said).toContain(`index ${prefix}-collections has a mapping that is not this service's: dynamic, organization_id, dimensions`)
      expect(said).toContain(`index ${prefix}-chunks-8-1 has a mapping that is not this service's: organization_id`)
      expect(said).toContain(`index ${prefix}-chunks-16 exists where an alias belongs`)
      expect(said).toContain(`index ${prefix}-collections is blocked by index.blocks.write`)
    })
  })
})
