import { ATTACKS } from '../test/support/attacks.ts'
import { testCatalog } from '../test/support/catalog.ts'
import { balancedWallet, type Caller, createCaller, newOrganization } from '../test/support/client.ts'
import { startMockEngine } from '../test/support/engines/mock-engine.ts'
import { type Times, workAsNeighbour } from '../test/support/processes/neighbour.ts'
import { startEmbedded } from '../test/support/processes/service.ts'
import type { BenchOptions, BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { quantile } from './support/quantile.ts'

/** Time of each measurement, alone and beside each attack. A p99 needs some hundred requests of a kind. */
const WORK_MS = 20_000
const SHORT_WORK_MS = 6_000
const WARM_UP_MS = 5_000
const TARGET_RATIO = 3
const SCOPES = ['inference', 'knowledge:read', 'knowledge:write', 'agents', 'admin']

/**
 * Measures chats, searches and documents of one organization for each known attack: alone, and then beside another
 * organization that repeats the attack. `only`: the attacks whose names contain this text. `limit`: the requests per
 * minute of the attacker's key.
 */
export async function benchNeighbours({ short, only, limit }: BenchOptions): Promise<BenchRow[]> {
  const workMs = short ? SHORT_WORK_MS : WORK_MS
  await using engine = await startMockEngine()
  const service = await startEmbedded({ catalog: testCatalog(engine.url), env: { KIS_LOG_LEVEL: 'error' } })
  try {
    const operator = createCaller(service, service.key)
    const neighbour = await newOrganization(operator, service, { creditUsd: '100' })
    await workAsNeighbour(neighbour, WARM_UP_MS)
    await using health = new Child('../../test/support/processes/health-process.ts', [service.rest])
    await health.nextMessage<string>()
    const rows: BenchRow[] = []
    for (const { name } of ATTACKS.filter((attack) => attack.name.includes(only ?? ''))) {
      const alone = await workAsNeighbour(neighbour, workMs)
      const attacker = await newOrganization(operator, service)
      const key = limit === undefined ? attacker.key : await limitedKey(attacker, limit)
      const started = [service.rest, service.graphql, key, name]
      await using attack = new Child('../../test/support/processes/attacker-process.ts', started)
      await attack.nextMessage()
      await health.request({})
      const beside = await workAsNeighbour(neighbour, workMs)
      const { longestMs, failures } = await health.request<{ longestMs: number; failures: number }>({})
      rows.push({
        what: `one tenant beside another with this attack for ${workMs / 1_000} s: ${name}`,
        figure: `p99 ${ratios(beside, alone)}; nothing lost; /healthz at most ${longestMs.toFixed(0)} ms, ${failures} unanswered`,
        target: `p99 ≤ ${TARGET_RATIO} × alone`,
        beside: `alone ${times(alone)}; beside ${times(beside)}`,
      })
    }
    await balancedWallet(neighbour)
    return rows
  } finally {
    await service.close()
  }
}

async function limitedKey(attacker: Caller, limit: number): Promise<string> {
  const { body } = await attacker.rest('POST', '/v1/keys', { name: 'limited', requests_per_minute: limit, scopes: SCOPES })
  return body.key
}

const kindsOf = (input: Times) => Object.keys(input) as (keyof Times)[]

function ratios(beside: Times, alone: Times): string {
  return kindsOf(alone)
    .map((kind) => `${kind} ${(quantile(beside[kind], 0.99) / quantile(alone[kind], 0.99)).toFixed(1)} ×`)
    .join(', ')
}

function times(input: Times): string {
  return kindsOf(input)
    .map(
      (kind) => `${kind} ${quantile(input[kind], 0.5).toFixed(0)} / ${quantile(input[kind], 0.99).toFixed(0)} ms of ${input[kind].length}`,
    )
    .join(', ')
}
