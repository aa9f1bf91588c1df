import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { startMockEngine } from '../../support/engines/mock-engine.ts'
import { PrometheusServer } from '../../support/engines/prometheus-server.ts'
import { eventually } from '../../support/eventually.ts'
import { freePorts, startEmbedded } from '../../support/processes/service.ts'

const BOARDS = new URL('../../../operate/grafana/', import.meta.url)

/** The queries of all panels, as Grafana would send them. */
function queries(): readonly { readonly panel: string; readonly query: string }[] {
  return readdirSync(BOARDS).flatMap((file) =>
    JSON.parse(readFileSync(new URL(file, BOARDS), 'utf8')).panels.flatMap((panel: Json) =>
      panel.targets.map(({ expr }: Json) => ({ panel: `${file}: ${panel.title}`, query: expr.replaceAll('$__rate_interval', '30s') })),
    ),
  )
}

/** What nothing has happened of in a short run without faults. */
const MAY_BE_EMPTY = /5xx|Fail|fail|organization/

await onEngine(
  'KIS_TEST_PROMETHEUS',
  'Prometheus',
  (programs) => {
    describe('Prometheus', () => {
      it('scrapes a service, evaluates every alert, runs every query of the dashboards, and sees the end of the process', async () => {
        await using mock = await startMockEngine()
        const [port] = await freePorts(1)
        const service = await startEmbedded({ catalog: mockCatalog(mock.url), env: { KIS_METRICS_PORT: String(port) } })
        try {
          await using prometheus = await PrometheusServer.start(programs, [port!])
          const target = async (): Promise<Json | undefined> => (await prometheus.get('targets')).activeTargets[0]
          await eventually(async () => (await target())?.health === 'up', 30_000)
          const caller = await newOrganization(createCaller(service, service.key), service)
          const collection = await newCollection(caller, 'mock-embed')
          await addDocument(caller, collection.id, 'a.txt', 'The harbour of Sur was built in 1931.')
          await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'harbour' })
          const socket = caller.socket()
          const counted = 'sum(kis_calls_charged_total{model="mock-chat"})'
          const valueAt = async (query: string) => Number((await prometheus.get('query', { query })).result[0]?.value[1] ?? 0)
          const chat = () =>
            caller.openai.chat.completions.create({ model: 'mock-chat', messages: [{ role: 'user', content: 'Hello' }], stream: true })
          const emptyPanels = async () => {
            const empty: string[] = []
            for (const { panel, query } of queries()) {
              const { result } = await prometheus.get('query', { query })
              if (result.length === 0 && !MAY_BE_EMPTY.test(panel + query)) empty.push(`${panel}: ${query}`)
            }
            return empty
          }
          let empty: readonly string[] = []
          // Each rate needs two scrapes that have it, with something between them.
          const isShown = async () => {
            for await (const _chunk of await chat());
            await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'harbour' })
            for await (const _result of socket.iterate({ query: '{ viewer { id } }' }));
            empty = await emptyPanels()
            return empty.length === 0 && (await valueAt(`rate(${counted.slice(4, -1)}[30s])`)) > 0
          }
          await eventually(isShown, 60_000).catch(() => expect(empty).toEqual([]))
          expect(await valueAt(counted)).toBeGreaterThan(0)
          await socket.dispose()

          const rules = async (): Promise<readonly Json[]> => (await prometheus.get('rules')).groups.flatMap((group: Json) => group.rules)
          await eventually(async () => (await rules()).every(({ health }) => health === 'ok'), 30_000)
          expect((await rules()).filter(({ state }) => state === 'firing')).toEqual([])
          // On a busy machine, one scrape may take longer than its second.
          await eventually(async () => (await target())?.lastError === '', 30_000)
          expect((await target())?.labels).toMatchObject({ job: 'kis' })

          await service.processes.get('all')!.end('SIGKILL')
          await eventually(async () => (await rules()).find(({ name }) => name === 'KisDown').state === 'pending', 30_000)
        } finally {
          await service.close()
        }
      }, 180_000)
    })
  },
  { isEverywhere: false },
)
