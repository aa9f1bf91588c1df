import { isDeepStrictEqual } from 'node:util'
import type { ExecutionResult } from 'graphql'
import { createGateway, type GatewayOptions } from '../../../gateway/main.ts'
import type { Link } from '../../../subgraphs/common/link/link.ts'
import { systemClock } from '../../../subgraphs/common/process/clock.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { LargeBodies } from '../../../subgraphs/common/server/admission/large-bodies.ts'
import { LoadShedder } from '../../../subgraphs/common/server/admission/load-shedder.ts'
import { BYTE_PATHS, CONFIG, createPrincipal, KEY, NO_SESSIONS } from '../support/start.ts'

/** Time that one case, and one request for the audit's own data, may take. */
const CASE_MS = 10_000

/** A case as the audit's server gives it. */
interface Case {
  readonly query: string
  readonly expected: {
    readonly data?: unknown
    /** Whether the answer must have errors; left out, when it may. */
    readonly errors?: boolean
  }
}

export interface SuiteResult {
  readonly id: string
  /** One for each case, in order. */
  readonly passed: readonly boolean[]
  /** Why the gateway did not load the suite's supergraph. */
  readonly failure?: string
}

/**
 * Runs a federation audit against our gateway. `auditUrl` is the audit's server, which gives `/ids`,
 * `/{id}/supergraph`, `/{id}/tests` and the subgraphs that the supergraph names.
 */
export async function* runAudit(auditUrl: string): AsyncGenerator<SuiteResult, void> {
  for (const id of await getJson<readonly string[]>(`${auditUrl}/ids`)) {
    const cases = await getJson<readonly Case[]>(`${auditUrl}/${id}/tests`)
    const supergraphSdl = await (await get(`${auditUrl}/${id}/supergraph`)).text()
    yield await runSuite(id, supergraphSdl, cases).catch((error: unknown) => ({
      id,
      passed: cases.map(() => false),
      failure: error instanceof Error ? error.message : String(error),
    }))
  }
}

async function runSuite(id: string, supergraphSdl: string, cases: readonly Case[]): Promise<SuiteResult> {
  await using gateway = await createGateway({
    supergraphSdl,
    links: findLinks(supergraphSdl),
    bytePaths: BYTE_PATHS,
    loadShedder: new LoadShedder({ ageMs: 0, stands: () => false }),
    sessions: NO_SESSIONS,
    authenticate: async (apiKey) => createPrincipal(apiKey),
    clock: systemClock,
    log: silentLog,
    config: { ...CONFIG, countNodes: () => Number.POSITIVE_INFINITY },
    bodies: new LargeBodies({ largestBytes: CONFIG.maxBodyBytes }),
  })
  const passed: boolean[] = []
  for (const [index, { query, expected }] of cases.entries()) {
    const context = { caller: KEY, requestId: `req_${id}_${index}`, signal: AbortSignal.timeout(CASE_MS) }
    const { data = null, errors = [] } = await gateway.link.execute({ query }, context)
    // Our gateway's objects have no prototype; only what a client would read counts.
    const read = JSON.parse(JSON.stringify(data)) as unknown
    const errorsFit = expected.errors === undefined || expected.errors === errors.length > 0
    passed.push(errorsFit && isDeepStrictEqual(read, expected.data ?? null))
  }
  return { id, passed }
}

/** A link over plain HTTP to each subgraph that the supergraph names. */
function findLinks(supergraphSdl: string): GatewayOptions['links'] {
  const graphs = supergraphSdl.matchAll(/@join__graph\(name: "([^"]+)", url: "([^"]+)"\)/g)
  // The gateway takes any names; its type has those of our subgraphs.
  return Object.fromEntries([...graphs].map(([, name, url]) => [name!, httpLink(url!)])) as Record<string, Link> as GatewayOptions['links']
}

const httpLink = (url: string): Link => ({
  async execute({ query, variables, operationName }, { signal }) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query, variables, operationName }),
      signal,
    })
    return (await response.json()) as ExecutionResult
  },
  subscribe() {
    throw new Error('the audit has no subscriptions')
  },
  openBytes() {
    throw new Error('the audit has no files')
  },
})

async function get(url: string): Promise<Response> {
  const response = await fetch(url, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(CASE_MS) })
  if (!response.ok) throw new Error(`the audit answered ${response.status} at ${url}`)
  return response
}

const getJson = async <T>(url: string): Promise<T> => (await (await get(url)).json()) as T
