import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, makeCaller, newCollection, newOrganization } from '../../support/client.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, freePorts, startFiveProcesses } from '../../support/processes/service.ts'

const ROLES = ['billing', 'knowledge', 'inference', 'gateway', 'rest-adapter']
const OPERATE = fileURLToPath(new URL('../../../operate', import.meta.url))

interface Board {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[]
}
interface Rule {
  readonly name: string
  readonly health: string
  readonly lastError?: string
}
type Result = readonly { readonly metric: Readonly<Record<string, string>>; readonly value: readonly [number, string] }[]

/** Panels that show nothing while nothing fails, nobody listens, and organizations are not named. */
const EMPTY_IN_PEACE = [/outcome!~/, /outcome="failed"/, /status=~"5\.\."/, /kis_organization_/, /kis_socket_operations_total/]

await onEngine(
  'KIS_TEST_PROMETHEUS',
  'a real Prometheus that scrapes every role',
  (folder) => {
    let engine: MockEngine
    let service: DistributedService
    let prometheus: ChildProcess | undefined
    let address: string
    let caller: Caller
    const data = mkdtempSync(`${tmpdir()}/prometheus-`)

    beforeAll(async () => {
      engine = await startMockEngine()
      const [own, ...ports] = await freePorts(1 + ROLES.length)
      address = `127.0.0.1:${own}`
      const makeEnv = (name: string) => ({ KIS_METRICS_PORT: String(ports[ROLES.indexOf(name.replace(/-1$/, ''))]) })
      service = await startFiveProcesses({ catalog: mockCatalog(engine.url), makeEnv })
      caller = await newOrganization(makeCaller(service, service.key), service)
      const scrapes = { job_name: 'kis', static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }] }
      const config = {
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        rule_files: [`${OPERATE}/prometheus/alerts.yaml`],
        scrape_configs: [scrapes],
      }
      // YAML reads JSON.
      writeFileSync(`${data}/prometheus.yml`, JSON.stringify(config))
      prometheus = spawn(
        `${folder}/prometheus`,
        [
          `--config.file=${data}/prometheus.yml`,
          `--storage.tsdb.path=${data}/series`,
          `--web.listen-address=${address}`,
          '--log.level=error',
        ],
        { stdio: 'ignore' },
      )
    }, 120_000)

    afterAll(async () => {
      if (prometheus?.exitCode === null && prometheus.kill()) await once(prometheus, 'exit')
      await service?.close()
      await engine?.[Symbol.asyncDispose]()
      rmSync(data, { recursive: true, force: true })
    })

    const ask = async <T>(path: string): Promise<T> => {
      const answer = await fetch(`http://${address}/api/v1/${path}`)
      const { status, data, error } = (await answer.json()) as { status: string; data: T; error?: string }
      if (status !== 'success') throw new Error(`${path}: ${error}`)
      return data
    }
    const query = async (expr: string): Promise<Result> => (await ask<{ result: Result }>(`query?query=${encodeURIComponent(expr)}`)).result
    const numberOf = async (expr: string): Promise<number> => Number((await query(expr))[0]?.value[1] ?? 0)
    const isUp = () =>
      query('up == 1').then(
        ({ length }) => length === ROLES.length,
        () => false,
      )

    it('gets the metrics of all five', async () => {
      await eventually(isUp, 30_000)
      expect((await query('kis_build_info')).map(({ metric }) => metric.role).toSorted()).toEqual([...ROLES].toSorted())
    })

    /** Chats, streams, and searches a document. */
    const use = async (collection: string) => {
      const chat = { model: 'mock-chat', messages: [{ role: 'user' as const, content: 'Hello' }] }
      await caller.openai.chat.completions.create(chat)
      for await (const _chunk of await caller.openai.chat.completions.create({ ...chat, stream: true }));
      await caller.rest('POST', `/v1/collections/${collection}/search`, { query: 'panels' })
    }

    it('counts what callers did', async () => {
      const { id } = await newCollection(caller, 'mock-embed')
      await addDocument(caller, id, 'panels.txt', 'Panels show what Prometheus has read.')
      await use(id)
      await eventually(
        async () => (await numberOf('sum(kis_http_requests_total{route="/v1/chat/completions",status="200"})')) === 2,
        30_000,
      )
      expect(await numberOf('sum(kis_http_first_byte_seconds_count{route="/v1/chat/completions"})')).toBe(2)
      expect(await numberOf('sum(kis_calls_charged_total{model="mock-chat"})')).toBe(2)
    })

    it('answers what each panel of the dashboards asks', async () => {
      const { id } = await newCollection(caller, 'mock-embed')
      const unanswered = async () => {
        // A rate needs a counter that Prometheus has seen before and after.
        await use(id)
        const found: string[] = []
        for (const file of readdirSync(`${OPERATE}/grafana`)) {
          const { panels } = JSON.parse(readFileSync(`${OPERATE}/grafana/${file}`, 'utf8')) as Board
          for (const { title, targets } of panels)
            for (const { expr } of targets) {
              const result = await query(expr.replaceAll('$__rate_interval', '1m'))
              if (result.length === 0 && !EMPTY_IN_PEACE.some((pattern) => pattern.test(expr))) found.push(`${file}: ${title}: ${expr}`)
            }
        }
        return found
      }
      await eventually(async () => (await unanswered()).length === 0, 30_000).catch(() => undefined)
      expect(await unanswered()).toEqual([])
    })

    it('takes the alert rules, of which none fires in peace', async () => {
      const rules = async () => (await ask<{ groups: { rules: Rule[] }[] }>('rules')).groups.flatMap((group) => group.rules)
      await eventually(async () => (await rules()).every(({ health }) => health !== 'unknown'), 30_000)
      expect((await rules()).filter(({ health }) => health !== 'ok')).toEqual([])
      expect(await query('ALERTS{alertstate="firing"}')).toEqual([])
    })

    it('tells of a process that has gone', async () => {
      await service.processes.get('knowledge-1')!.end('SIGKILL')
      await eventually(async () => (await numberOf('count(up == 0)')) === 1, 30_000)
      await eventually(async () => (await query('ALERTS{alertname="KisDown"}')).length === 1, 30_000)
    })
  },
  { isEverywhere: false },
)
