import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { localLink } from '../../cli/links/local-link.ts'
import { temporaryFolder } from '../../test/support/data/temporary-folder.ts'
import { bytePaths } from '../common/bytes/byte-paths.ts'
import type { Link } from '../common/link/link.ts'
import { systemClock } from '../common/process/clock.ts'
import { idSource } from '../common/process/ids.ts'
import { silentLog } from '../common/process/log.ts'
import type { InferenceConfig } from './config.ts'
import { parseCatalog } from './domain/catalog/catalog-file.ts'
import { createInference } from './main.ts'
import { createRequestContext } from './test-support/parts.ts'

const folder = temporaryFolder()

function createConfig(catalog: string): InferenceConfig {
  return {
    catalog: parseCatalog(catalog, 'catalog.yaml', { VENDOR_KEY: 'k' }),
    modelDirectory: new URL('../../models/e5-small-ar-en/', import.meta.url),
    egressAllowed: new Set(),
    localMcpServers: new Set(),
    dataDirectory: folder,
    mongodb: null,
  }
}

const model = 'kind: chat, max_output_tokens: 1, price: { input: "1", output: "1" }'
const catalog = `engines:
  on: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: "\${VENDOR_KEY}", badge: regional }
  off: { kind: openai, base_url: "http://127.0.0.1:9/v1", api_key: "\${OTHER_KEY}", badge: cloud }
models:
  - { id: a, engine: on, ${model} }
  - { id: b, engine: off, ${model} }
`
const runtime = {
  knowledge: {
    execute: async () => ({ data: {} }),
    openBytes: () => {
      throw new Error('not asked')
    },
    subscribe: () => {
      throw new Error('not asked')
    },
  },
  billing: {} as Link,
  folder: { inspect: async () => ({ installation: { id: 'inst_1' }, lost: [] }) },
  bytePaths: bytePaths(systemClock, new Uint8Array(32)),
  secret: new Uint8Array(32),
  queue: { wait: () => () => undefined },
  clock: systemClock,
  ids: idSource(systemClock),
  log: silentLog,
}

it('serves the models of the enabled engines', async () => {
  const config = createConfig(catalog)
  await using inference = await createInference(config, runtime)
  await inference.opened
  expect(await inference.problems()).toEqual([])
  const { data } = await localLink(inference, silentLog).execute({ query: '{ models { id residency } }' }, createRequestContext())
  expect(JSON.parse(JSON.stringify(data))).toEqual({ models: [{ id: 'a', residency: 'REGIONAL' }] })
})

it('serves what needs no store while the store cannot be opened, and reports that it waits for the store', async () => {
  const file = join(folder, 'mount')
  writeFileSync(file, '')
  await using inference = await createInference({ ...createConfig(catalog), dataDirectory: join(file, 'data') }, runtime)
  expect(await inference.problems()).toEqual([
    expect.stringMatching(/^document store: the folder of .*inference\.sqlite cannot be created/),
  ])
  const { data } = await localLink(inference, silentLog).execute({ query: '{ models { id } }' }, createRequestContext())
  expect(JSON.parse(JSON.stringify(data))).toEqual({ models: [{ id: 'a' }] })
  rmSync(file)
  await inference.opened
  expect(await inference.problems()).toEqual([])
})
