import { testCatalog } from '../test/support/catalog.ts'
import { balancedWallet, makeCaller, newOrganization } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { type Times, workAsNeighbour } from '../test/support/processes/neighbour.ts'
import { startEmbedded } from '../test/support/processes/service.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { residentBytesOfTree } from './support/process-tree.ts'
import { quantile } from './support/quantile.ts'

const ALONE_MS = 30_000
const BESIDE_MS = 90_000
const MEBIBYTE = 1024 * 1024

/**
 * Chats, searches and documents of one organization: alone, and while another organization runs every attack that we
 * know without a pause.
 */
export async function benchNeighbours(): Promise<BenchRow[]> {
  await using engine = await startMockEngine()
  const service = await startEmbedded({ catalog: testCatalog(engine.url), env: { KIS_LOG_LEVEL: 'error' } })
  try {
    const pid = service.processes.get('all')!.pid
    const operator = makeCaller(service, service.key)
    const [attacker, neighbour] = [await newOrganization(operator, service), await newOrganization(operator, service, { creditUsd: '100' })]
    await workAsNeighbour(neighbour, 5_000)
    const alone = await workAsNeighbour(neighbour, ALONE_MS)
    await using health = new Child('../../test/support/processes/health-process.ts', [service.rest])
    await health.answer<string>()
    const before = residentBytesOfTree(pid)
    await using attacks = new Child('../../test/support/processes/attacker-process.ts', [service.rest, service.graphql, attacker.key])
    const beside = await workAsNeighbour(neighbour, BESIDE_MS)
    const after = residentBytesOfTree(pid)
    const { longestMs, failures } = await health.ask<{ longestMs: number; failures: number }>({})
    await attacks[Symbol.asyncDispose]()
    await balancedWallet(neighbour)
    const kinds = Object.keys(alone) as (keyof Times)[]
    const ratios = kinds.map((kind) => `${kind} ${(quantile(beside[kind], 0.99) / quantile(alone[kind], 0.99)).toFixed(1)} ×`)
    const p99 = (times: Times) =>
      kinds.map((kind) => `${kind} ${quantile(times[kind], 0.99).toFixed(0)} ms of ${times[kind].length}`).join(', ')
    return [
      {
        what: `one tenant beside another that attacks for ${BESIDE_MS / 1_000} s`,
        figure: `p99 ${ratios.join(', ')}; nothing lost; /healthz at most ${longestMs.toFixed(0)} ms, ${failures} unanswered`,
        bar: 'p99 ≤ 3 × alone; /healthz ≤ 500 ms',
        beside: `alone ${p99(alone)}; beside ${p99(beside)}; memory ${Math.round(before / MEBIBYTE)} MB before, ${Math.round(after / MEBIBYTE)} MB after`,
      },
    ]
  } finally {
    await service.close()
  }
}
