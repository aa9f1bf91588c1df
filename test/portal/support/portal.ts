import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isFresh } from '../../../portal/server/build-bundle.ts'
import { testCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Ten times what it takes on two busy cores. */
const BUILD_MS = 100_000

/** The real service with its portal, on the embedded models and a chat vendor of the test. */
export interface RunningPortal extends AsyncDisposable {
  readonly service: Service
  readonly operator: Caller
  readonly mock: MockEngine
}

/** Builds the portal if it is stale, so that no test meets the notice that it is being built. One file builds for all. */
async function buildPortal(): Promise<void> {
  const folder = join(ROOT, 'portal')
  // The second of two workers waits for the first. What a killed one left is passed over in the end.
  const lock = join(ROOT, 'node_modules/.cache/portal-build')
  await mkdir(join(ROOT, 'node_modules/.cache'), { recursive: true })
  const deadline = Date.now() + BUILD_MS
  while (!(await isFresh(folder))) {
    const isOurs = await mkdir(lock).then(
      () => true,
      () => Date.now() > deadline,
    )
    if (!isOurs) await new Promise((resolve) => setTimeout(resolve, 200))
    else
      try {
        if (!(await isFresh(folder)))
          await promisify(execFile)(process.execPath, ['portal/server/build-bundle.ts'], { cwd: ROOT, timeout: BUILD_MS })
      } finally {
        await rm(lock, { recursive: true, force: true })
      }
  }
}

/** `addModels`: adds a vendor and its models to the catalog. */
export async function startPortal(
  env: Readonly<Record<string, string>> = {},
  addModels = (catalog: string) => catalog,
): Promise<RunningPortal> {
  await buildPortal()
  const mock = await startMockEngine()
  const service = await startEmbedded({ catalog: addModels(testCatalog(mock.url)), env: { KIS_PORTAL: 'on', ...env } })
  return {
    service,
    mock,
    operator: createCaller(service, service.key),
    async [Symbol.asyncDispose]() {
      await service.close()
      await mock[Symbol.asyncDispose]()
    },
  }
}

/** An organization with something on every page: documents in two languages, an agent with runs, a workflow, keys. */
export async function furnishedOrganization({ operator, service }: RunningPortal): Promise<Caller & { readonly organizationId: string }> {
  const owner = await newOrganization(operator, service, { name: 'Harbour Museum متحف الميناء' })
  const post = async (path: string, body: unknown) => {
    const response = await owner.rest('POST', path, body)
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  const collection = await post('/v1/collections', {
    collection_code: 'harbour',
    collection_name: 'Harbour archive أرشيف الميناء',
    embedding_model: 'e5-small-ar-en',
    description: 'Letters and plans of the harbour.',
  })
  await addDocument(
    owner,
    collection.id,
    'harbour.md',
    '# The harbour\nThe harbour was built in 1931.\n\n## Light\nThe lighthouse is 40 metres high.',
  )
  await addDocument(owner, collection.id, 'الميناء.md', '# الميناء\nبُني الميناء عام ١٩٣١.\n\n## المنارة\nيبلغ ارتفاع المنارة أربعين مترًا.')
  await addDocument(owner, collection.id, 'empty.txt', ' ')
  const agent = await post('/v1/agents', {
    ...{ code: 'guide', name: 'Guide المرشد', model: 'mock-chat', collection_ids: [collection.id], instructions: 'Answer briefly.' },
  })
  await post(`/v1/agents/${agent.id}/runs`, { input: 'How high is the lighthouse?', keep_thread: true })
  const workflow = await post('/v1/workflows', {
    code: 'greet',
    name: 'Greeting تحية',
    definition: { nodes: [{ id: 'say', type: 'template', template: 'Welcome' }], output: '{{ nodes.say.text }}' },
  })
  await post(`/v1/workflows/${workflow.id}/runs`, { inputs: {}, wait: true })
  await post('/v1/keys', {
    name: 'Reading desk',
    scopes: ['knowledge:read', 'inference'],
    spend_limit: { amount_usd: '5', period: 'month' },
  })
  return owner
}
