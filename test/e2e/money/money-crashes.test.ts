import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { APIError } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { audit } from '../../../subgraphs/billing/test-support/audit.ts'
import { openCollections } from '../../../subgraphs/billing/use-cases/tables.ts'
import { openSqliteDocumentStore } from '../../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { type BillingOperation, BillingTap, type Phase } from '../../support/billing-tap.ts'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, nano, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type DistributedService, freePorts, startFiveProcesses } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

/** A hold lasts 45 s, the reaper looks every 5 s; the rest is for a busy machine. */
const HOLDS_END_MS = 90_000
/** A call is at its point within this. */
const POINT_MS = 30_000
/** Each point is met this often. */
const RUNS = soaking ? 20 : 1
/** Prices of the test catalog's `mock-chat` in nano-USD a token. */
const INPUT = 1_000n
const OUTPUT = 2_000n
/** Inference tells billing of a stream's progress every so many tokens. */
const CHECKPOINT_TOKENS = 64
/** Of scenario 3: the stream is killed at this token. */
const KILLED_AT_TOKEN = 500
const LEAST_CHARGED_TOKENS = KILLED_AT_TOKEN - CHECKPOINT_TOKENS

/**
 * The exchange with billing, or the state of the engine's answer, at which a process is killed. `pieces`: what the
 * engine has produced until then; `charge`: what the call costs in the end: nothing before the first checkpoint.
 * `checkpoint`: the input, and the output up to the last checkpoint, estimated. `used`: what the engine reported.
 */
interface CrashPoint {
  readonly name: string
  readonly at: readonly [BillingOperation, Phase] | 'asked' | 'first piece' | 'checkpoints told'
  readonly victim: 'inference-1' | 'billing-1'
  readonly charge: 'nothing' | 'checkpoint' | 'used'
  readonly isRequested: boolean
  /** Whether the caller has the answer all the same. */
  readonly isResponded?: boolean
}

/** In the order of a call's life; `test/README.md` lists them. */

const CRASH_POINTS: readonly CrashPoint[] = [
  {
    name: '1 inference, before billing receives the call',
    at: ['placeHold', 'request'],
    victim: 'inference-1',
    charge: 'nothing',
    isRequested: false,
  },
  {
    name: '2 billing, before the hold is written',
    at: ['placeHold', 'request'],
    victim: 'billing-1',
    charge: 'nothing',
    isRequested: false,
  },
  {
    name: '3 billing, when the hold is written and not reported',
    at: ['placeHold', 'answer'],
    victim: 'billing-1',
    charge: 'nothing',
    isRequested: false,
  },
  {
    name: '4 inference, when the hold is written and not reported',
    at: ['placeHold', 'answer'],
    victim: 'inference-1',
    charge: 'nothing',
    isRequested: false,
  },
  {
    name: '5 inference, when the engine is called and has not responded',
    at: 'asked',
    victim: 'inference-1',
    charge: 'nothing',
    isRequested: true,
  },
  {
    name: '6 inference, after the first chunk of the engine',
    at: 'first piece',
    victim: 'inference-1',
    charge: 'nothing',
    isRequested: true,
  },
  {
    name: `7 inference, at token ${KILLED_AT_TOKEN}`,
    at: 'checkpoints told',
    victim: 'inference-1',
    charge: 'checkpoint',
    isRequested: true,
  },
  {
    name: '8 inference, between the end of the engine and the charge',
    at: ['settleHold', 'request'],
    victim: 'inference-1',
    charge: 'used',
    isRequested: true,
  },
  {
    name: '9 billing, before the charge is written',
    at: ['settleHold', 'request'],
    victim: 'billing-1',
    charge: 'used',
    isRequested: true,
    isResponded: true,
  },
  {
    name: '10 billing, when the charge is written and not reported',
    at: ['settleHold', 'answer'],
    victim: 'billing-1',
    charge: 'used',
    isRequested: true,
    isResponded: true,
  },
  {
    name: '11 inference, when the charge is written and not reported',
    at: ['settleHold', 'answer'],
    victim: 'inference-1',
    charge: 'used',
    isRequested: true,
  },
]

interface CrashedCall {
  readonly point: CrashPoint
  readonly stream: boolean
  readonly id: string
  readonly caller: Caller & { readonly organizationId: string }
  hasBegun(): boolean
  /**
   * Sends it again with the same idempotency key, and gives the status; 0: the first call may still be charged, come
   * again.
   */
  repeat(): Promise<number>
  /** Null: the answer came whole. */
  readonly failure: Promise<unknown>
}

describe('Processes killed during calls', () => {
  let engine: MeteredEngine
  let tap: BillingTap
  let service: DistributedService
  const folder = mkdtempSync(join(tmpdir(), 'kis-crash-'))
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    const [billingPort, tapPort] = (await freePorts(2)) as [number, number]
    tap = await BillingTap.start(tapPort, `http://127.0.0.1:${billingPort}`)
    service = await startFiveProcesses({
      catalog: mockCatalog(engine.url),
      folder,
      ports: { billing: [billingPort] },
      createEnv: (name): Record<string, string> => (name === 'inference-1' ? { KIS_BILLING_URL: tap.url } : {}),
    })
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await tap?.[Symbol.asyncDispose]()
    await engine?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  function call(point: CrashPoint, id: string, caller: CrashedCall['caller'], stream: boolean): CrashedCall {
    const isLong = point.at === 'checkpoints told'
    const pieces = isLong ? KILLED_AT_TOKEN + 100 : 5
    const allowed = point.at === 'asked' ? 0 : point.at === 'first piece' ? 1 : isLong ? KILLED_AT_TOKEN : undefined
    const content = JSON.stringify({ id, pieces, usage: 'end', ...(allowed !== undefined && { allowed }) })
    const request = { model: 'mock-chat', messages: [{ role: 'user' as const, content }] }
    const headers = { 'idempotency-key': id }
    let read = 0
    const failure = (async () => {
      try {
        if (stream) {
          for await (const { choices } of await caller.openai.chat.completions.create({ ...request, stream: true }, { headers }))
            if (choices[0]?.delta.content) read++
          if (read !== pieces) throw new Error(`${read} pieces of ${pieces}`)
        } else await caller.openai.chat.completions.create(request, { headers })
        return null
      } catch (error) {
        return error
      }
    })()
    const repeat = async () => {
      try {
        if (!stream) await caller.openai.chat.completions.create(request, { headers })
        else
          for await (const { choices } of await caller.openai.chat.completions.create({ ...request, stream: true }, { headers }))
            if (!choices) throw new Error('a chunk without choices')
        return 200
      } catch (error) {
        if (!(error instanceof APIError) || error.headers?.get('x-should-retry') === 'true') return 0
        return error.status
      }
    }
    return { point, stream, id, caller, repeat, hasBegun: () => read > 0, failure }
  }

  /** One call of each form up to the point, and the end of the process there. */
  async function crashAt(point: CrashPoint, run: number): Promise<readonly CrashedCall[]> {
    const operator = createCaller(service, service.key)
    // A unary call tells billing of its progress only by renewals.
    const forms = point.at === 'checkpoints told' ? [true] : [false, true]
    const callers = await Promise.all(forms.map(() => newOrganization(operator, service)))
    let waiting = 0
    const dead = Promise.withResolvers<'lose'>()
    const { at } = point
    if (Array.isArray(at)) {
      tap.intercept = ({ operation }, phase) => {
        if (operation !== at[0] || phase !== at[1]) return 'pass'
        waiting++
        return dead.promise
      }
    }
    const before = tap.exchanges.length
    const calls = forms.map((stream, i) => call(point, `${point.name.split(' ')[0]}-${run}-${stream}`, callers[i]!, stream))
    const allRequested = () => calls.every(({ id }) => engine.calls.get(id)?.requests === 1)
    const isThere = () => {
      if (Array.isArray(at)) return waiting === forms.length
      if (at === 'asked') return allRequested()
      if (at === 'first piece') return allRequested() && calls.every(({ hasBegun, stream }) => hasBegun() || !stream)
      return tap.exchanges
        .slice(before)
        .some(
          ({ operation, variables }) => operation === 'checkpointHold' && variables.input!.quantities!.outputTokens >= LEAST_CHARGED_TOKENS,
        )
    }
    const failed = Promise.race(calls.map(({ failure }) => failure)).then((failure) => {
      if (!isThere()) throw new Error(`a call ended before ${point.name}`, { cause: failure })
    })
    await Promise.race([eventually(isThere, POINT_MS), failed])
    const restarted = service.restart(point.victim, 'SIGKILL')
    dead.resolve('lose')
    tap.intercept = null
    await restarted
    // What goes on is over before the next process dies.
    await Promise.all(calls.map(({ failure }) => failure))
    return calls
  }

  it(`${RUNS} times at each of the 11 points end every hold once, call no engine twice, and leave a balanced ledger`, async () => {
    const calls: CrashedCall[] = []
    for (let run = 0; run < RUNS; run++) for (const point of CRASH_POINTS) calls.push(...(await crashAt(point, run)))
    const heldBy = async ({ caller }: CrashedCall) => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd)
    for (const crashed of calls) await eventually(async () => (await heldBy(crashed)) === 0n, HOLDS_END_MS)

    for (const { point, stream, id, caller, failure } of calls) {
      const what = `${point.name}, ${stream ? 'stream' : 'unary'}`
      if (point.isResponded) expect(await failure, what).toBeNull()
      else expect(await failure, what).toBeInstanceOf(Error)
      expect(engine.calls.get(id)?.requests ?? 0, what).toBe(point.isRequested ? 1 : 0)
      const records: readonly Json[] = (await caller.rest('GET', '/v1/usage')).body.data
      const { balance_usd } = await balancedWallet(caller)
      const charged = nano('10') - nano(balance_usd)
      if (point.charge === 'nothing') {
        expect([charged, records], what).toEqual([0n, []])
        continue
      }
      expect(records, what).toHaveLength(1)
      const { source, input_tokens, output_tokens } = records[0]
      expect(charged, what).toBe(BigInt(input_tokens) * INPUT + BigInt(output_tokens) * OUTPUT)
      if (point.charge === 'used') expect([source, input_tokens, output_tokens], what).toEqual(['provider', METERED_INPUT_TOKENS, 5])
      else {
        expect(source, what).toBe('estimated')
        expect(input_tokens, what).toBeGreaterThan(0)
        expect(output_tokens, what).toBeGreaterThanOrEqual(LEAST_CHARGED_TOKENS)
        expect(output_tokens, what).toBeLessThanOrEqual(engine.calls.get(id)!.produced)
      }
    }

    // Who asks again has one call, whatever came of the first one: a new one where that was not charged, and where it
    // was no other charge and no other answer.
    for (const { point, stream, id, caller, repeat } of calls) {
      const what = `${point.name}, ${stream ? 'stream' : 'unary'}, repeated`
      const before = (await balancedWallet(caller)).balance_usd
      let status = 0
      await eventually(async () => {
        status = await repeat()
        return status !== 0
      }, HOLDS_END_MS)
      expect(status, what).toBe(point.charge === 'checkpoint' ? 409 : 200)
      if (point.charge !== 'nothing') expect((await balancedWallet(caller)).balance_usd, what).toBe(before)
      const records: readonly Json[] = (await caller.rest('GET', '/v1/usage')).body.data
      expect(records, what).toHaveLength(1)
      const repeats = point.charge === 'nothing' ? 1 : 0
      expect(engine.calls.get(id)!.requests, what).toBe((point.isRequested ? 1 : 0) + repeats)
    }

    // The documents themselves, when nobody writes them any more.
    await service.close()
    await using store = await openSqliteDocumentStore({ file: join(folder, 'billing-1', 'billing.sqlite'), log: silentLog })
    const collections = openCollections(store)
    for (const { caller } of calls) expect((await audit({ collections }, caller.organizationId)).openHolds).toEqual([])
  }, 7_200_000)
})
