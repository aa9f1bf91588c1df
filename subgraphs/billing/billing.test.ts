import { randomBytes } from 'node:crypto'
import { graphql } from 'graphql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { idSource } from '../common/ids.ts'
import { silentLog } from '../common/log.ts'
import type { DocumentStore } from '../common/ports/document-store.ts'
import { type Caller, type Principal, SCOPES } from '../common/principal.ts'
import { PRINCIPAL_FIELDS, type PrincipalAnswer, principalFrom } from '../common/principal-answer.ts'
import { type Billing, billingOn } from './billing.ts'
import { apiKeyFrom } from './domain/api-key.ts'
import { STORES } from './test-support/stores.ts'
import { ManualClock, principalOf, SELF_HOSTED, SMALL_PLAN } from './test-support/world.ts'
import { openCollections } from './use-cases/collections.ts'

const WEBHOOKS = { egressAllowed: new Set<string>(), retryBackoffMs: 1_000 }
const GATEWAY: Caller = { service: 'gateway' }
/** Answers are compared with what is expected of them, so their fields need no types. */
type Answer = Record<string, unknown>

/** The store for one billing, which leaves it open. */
function shared(store: DocumentStore): DocumentStore {
  return { collection: (spec) => store.collection(spec), ping: (signal) => store.ping(signal), async [Symbol.asyncDispose]() {} }
}

for (const { name, open } of STORES)
  describe(`the billing subgraph on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let billing: Billing
    let operator: Principal

    const start = async (bootstrapApiKey: string | null = null) => {
      const started = billingOn(
        async () => shared(store),
        {
          bootstrapApiKey,
          bootstrapCreditNanoUsd: 100_000_000_000n,
          pepper: new Uint8Array(32).fill(1),
          plans: [SELF_HOSTED, SMALL_PLAN],
          ...WEBHOOKS,
        },
        { clock, ids: idSource(clock), log: silentLog },
      )
      await started.opened
      return started
    }
    const restart = async (bootstrapApiKey?: string) => {
      await billing[Symbol.asyncDispose]()
      billing = await start(bootstrapApiKey)
    }
    const execute = (caller: Caller | null, source: string, variableValues: Record<string, unknown> = {}) => {
      const context = { caller, requestId: 'req_1', signal: new AbortController().signal }
      return graphql({ schema: billing.schema, source, variableValues, contextValue: billing.contextOf(context) })
    }
    const data = async (caller: Caller | null, source: string, variables?: Record<string, unknown>) => {
      const result = await execute(caller, source, variables)
      expect(result.errors).toBeUndefined()
      return JSON.parse(JSON.stringify(result.data)) as Answer
    }
    const failure = async (caller: Caller | null, source: string, variables?: Record<string, unknown>) =>
      (await execute(caller, source, variables)).errors?.[0]?.extensions
    const principal = async (apiKey: string) => {
      const answer = await data(GATEWAY, `query ($apiKey: String!) { principalOfApiKey(apiKey: $apiKey) { ${PRINCIPAL_FIELDS} } }`, {
        apiKey,
      })
      return principalFrom(answer.principalOfApiKey as PrincipalAnswer)
    }
    const refused = (apiKey: string) =>
      failure(GATEWAY, 'query ($apiKey: String!) { principalOfApiKey(apiKey: $apiKey) { apiKeyId } }', { apiKey })
    const createKey = async (caller: Caller, input: Record<string, unknown>) =>
      (await data(caller, 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id } } }', { input }))
        .createApiKey as { key: string; apiKey: { id: string } }
    /** A second tenant with some credit. */
    const tenant = async () => {
      const made = (await data(operator, 'mutation { createOrganization(input: { name: "Tenant" }) { key organization { id } } }'))
        .createOrganization as { key: string; organization: { id: string } }
      await data(
        operator,
        'mutation ($id: ID!) { topUpWallet(input: { organizationId: $id, amount: "5", reference: "p" }) { entry { id } } }',
        {
          id: made.organization.id,
        },
      )
      return { id: made.organization.id, admin: await principal(made.key) }
    }
    const newHold = () => idSource(clock)('hold')
    const place = (caller: Caller, id: string, tokens = 1_000) =>
      data(
        caller,
        `mutation ($id: ID!, $tokens: Int!) { placeHold(input: { id: $id, operation: CHAT_COMPLETION, modelId: "gpt-4o-mini", requestId: "req_7",
          rateCard: { version: "v1", inputTokens: "0.15" }, ceiling: { inputTokens: $tokens }, ttlSeconds: 60 }) { id state amount } }`,
        { id, tokens },
      )
    const settle = (caller: Caller, id: string, tokens = 100) =>
      data(
        caller,
        `mutation ($id: ID!, $tokens: Int!) { settleHold(input: { id: $id, quantities: { inputTokens: $tokens }, source: PROVIDER }) { state charged absorbed } }`,
        { id, tokens },
      )

    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      billing = await start()
      operator = await principal((await billing.bootstrapKey)!)
    })
    afterEach(async () => {
      await billing[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    })

    describe('on its first start', () => {
      it('makes an organization with credit and the key of its operator', async () => {
        expect(operator).toMatchObject({ scopes: ['admin', 'operator'], residencyPolicy: 'unrestricted', plan: SELF_HOSTED })
        const answer = await data(
          operator,
          '{ organization { name plan { code } wallet { balance held available entries { edges { node { kind reference sequence } } } } } }',
        )
        expect(answer.organization).toMatchObject({
          plan: { code: 'self-hosted' },
          wallet: {
            balance: '100',
            held: '0',
            available: '100',
            entries: { edges: [{ node: { kind: 'TOP_UP', reference: 'bootstrap', sequence: 1 } }] },
          },
        })
      })

      it('shows the key at each start until it is used, always the same one', async () => {
        await restart()
        expect(await billing.bootstrapKey).toBeNull()
        const fresh = await open()
        const config = { bootstrapApiKey: null, bootstrapCreditNanoUsd: 0n, pepper: new Uint8Array(32), plans: [SELF_HOSTED], ...WEBHOOKS }
        const keys: (string | null)[] = []
        for (let i = 0; i < 3; i++) {
          await using unused = billingOn(async () => shared(fresh), config, { clock, ids: idSource(clock), log: silentLog })
          keys.push(await unused.bootstrapKey)
        }
        expect(new Set(keys).size).toBe(1)
        expect(keys[0]).not.toBeNull()
        await fresh[Symbol.asyncDispose]()
      })

      it('takes the key that the operator brings, and does not show it', async () => {
        await using fresh = await open()
        const key = apiKeyFrom(randomBytes(32))
        const config = { bootstrapApiKey: key, bootstrapCreditNanoUsd: 0n, pepper: new Uint8Array(32), plans: [SELF_HOSTED], ...WEBHOOKS }
        const runtime = { clock, ids: idSource(clock), log: silentLog }
        const source = `{ principalOfApiKey(apiKey: "${key}") { scopes } }`
        const another = { ...config, bootstrapApiKey: apiKeyFrom(randomBytes(32)) }
        for (const each of [config, config, another, { ...config, bootstrapApiKey: null }]) {
          await using started = billingOn(async () => shared(fresh), each, runtime)
          expect(await started.bootstrapKey).toBeNull()
          const context = started.contextOf({ caller: GATEWAY, requestId: 'req_1', signal: new AbortController().signal })
          expect((await graphql({ schema: started.schema, source, contextValue: context })).errors).toBeUndefined()
        }
      })

      it('does not start without the plan of its first organization', () => {
        const config = { bootstrapApiKey: null, bootstrapCreditNanoUsd: 0n, pepper: new Uint8Array(32), plans: [SMALL_PLAN], ...WEBHOOKS }
        expect(() => billingOn(async () => store, config, { clock, ids: idSource(clock), log: silentLog })).toThrow('self-hosted')
      })
    })

    describe('knows an API key', () => {
      it('until it is rotated, revoked or runs out, with one answer for all that fails', async () => {
        const { key, apiKey } = await createKey(operator, { name: 'a', expiresAt: '2026-11-21T08:01:00Z' })
        expect(await principal(key)).toMatchObject({
          apiKeyId: apiKey.id,
          scopes: ['inference', 'knowledge:read', 'knowledge:write'],
          modelAllowlist: null,
        })
        const rotated = (
          await data(operator, 'mutation ($id: ID!) { rotateApiKey(id: $id) { key apiKey { id last4 } } }', { id: apiKey.id })
        ).rotateApiKey as { key: string; apiKey: { last4: string } }
        expect(rotated.apiKey.last4).toBe(rotated.key.slice(-4))
        expect(await principal(rotated.key)).toMatchObject({ apiKeyId: apiKey.id })
        const answers = [await refused(key), await refused(apiKeyFrom(randomBytes(32))), await refused('nonsense')]
        clock.advance(60_000)
        answers.push(await refused(rotated.key))
        const other = await createKey(operator, { name: 'b' })
        const revoke = 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { revokedAt } } }'
        const revoked = await data(operator, revoke, { id: other.apiKey.id })
        clock.advance(1_000)
        expect(await data(operator, revoke, { id: other.apiKey.id })).toEqual(revoked)
        answers.push(await refused(other.key))
        for (const answer of answers) expect(answer).toEqual(answers[0])
        expect(answers[0]).toMatchObject({ code: 'INVALID_API_KEY' })
        for (const change of ['rotateApiKey(id: $id) { key }', 'updateApiKey(input: { id: $id, name: "c" }) { apiKey { id } }'])
          expect(await failure(operator, `mutation ($id: ID!) { ${change} }`, { id: other.apiKey.id })).toMatchObject({
            code: 'INVALID_REQUEST',
          })
      })

      it('of accepted work after it was revoked, but not of another organization', async () => {
        const { admin } = await tenant()
        const { apiKey } = await createKey(admin, { name: 'a', modelAllowlist: ['m'] })
        await data(admin, 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', { id: apiKey.id })
        const source = `query ($organizationId: ID!, $apiKeyId: ID!) { principalOfKey(organizationId: $organizationId, apiKeyId: $apiKeyId) { ${PRINCIPAL_FIELDS} } }`
        const ask = (organizationId: string) => data(GATEWAY, source, { organizationId, apiKeyId: apiKey.id })
        expect((await ask(admin.organizationId)).principalOfKey).toMatchObject({ apiKeyId: apiKey.id, modelAllowlist: ['m'] })
        expect((await ask(operator.organizationId)).principalOfKey).toBeNull()
        expect((await ask('org_none')).principalOfKey).toBeNull()
      })

      it('and keeps what is not changed of it', async () => {
        const { apiKey } = await createKey(operator, { name: 'a', modelAllowlist: ['m', 'n', 'm'], scopes: ['AGENTS', 'AGENTS'] })
        const fields = 'apiKey { id name scopes modelAllowlist expiresAt revokedAt createdAt last4 }'
        const update = (input: object) =>
          data(operator, `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { ${fields} } }`, {
            input: { id: apiKey.id, ...input },
          })
        expect((await update({ name: 'b' })).updateApiKey).toMatchObject({
          apiKey: { name: 'b', scopes: ['AGENTS'], modelAllowlist: ['m', 'n'], expiresAt: null, revokedAt: null },
        })
        expect((await update({ modelAllowlist: null, expiresAt: '2027-01-01T00:00:00Z' })).updateApiKey).toMatchObject({
          apiKey: { name: 'b', modelAllowlist: null, expiresAt: '2027-01-01T00:00:00.000Z' },
        })
        expect((await update({ expiresAt: null, scopes: ['BILLING_READ'] })).updateApiKey).toMatchObject({
          apiKey: { expiresAt: null, scopes: ['BILLING_READ'] },
        })
        expect(await data(operator, 'query ($id: ID!) { apiKey(id: $id) { name } }', { id: apiKey.id })).toEqual({ apiKey: { name: 'b' } })
      })
    })

    it("limits a key by the minute to the tighter of its own and its plan's limits", async () => {
      const { id, admin } = await tenant()
      await data(operator, 'mutation ($id: ID!) { assignPlan(input: { organizationId: $id, plan: "small" }) { organization { id } } }', {
        id,
      })
      const made = await createKey(admin, { name: 'slow', requestsPerMinute: 10, tokensPerMinute: 500 })
      expect(await principal(made.key)).toMatchObject({ requestsPerMinute: 10, tokensPerMinute: 500 })
      const change = `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { apiKey { requestsPerMinute tokensPerMinute } } }`
      const changed = await data(admin, change, { input: { id: made.apiKey.id, requestsPerMinute: 1_000, tokensPerMinute: null } })
      expect(changed).toEqual({ updateApiKey: { apiKey: { requestsPerMinute: 1_000, tokensPerMinute: null } } })
      expect(await principal(made.key)).toMatchObject({ requestsPerMinute: SMALL_PLAN.requestsPerMinute, tokensPerMinute: null })
      await data(admin, change, { input: { id: made.apiKey.id, name: 'still slow' } })
      expect(await data(admin, '{ organization { apiKeys { edges { node { name requestsPerMinute } } } } }')).toMatchObject({
        organization: { apiKeys: { edges: expect.arrayContaining([{ node: { name: 'still slow', requestsPerMinute: 1_000 } }]) } },
      })
    })

    describe('hands out no more than the caller has', () => {
      const create = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }'

      it('so that only an operator makes, changes or takes over an operator', async () => {
        const { key, apiKey } = await createKey(operator, { name: 'admin', scopes: ['ADMIN'] })
        const admin = await principal(key)
        expect(await failure(admin, create, { input: { name: 'x', scopes: ['OPERATOR'] } })).toMatchObject({ code: 'PERMISSION_DENIED' })
        const raise = 'mutation ($id: ID!) { updateApiKey(input: { id: $id, scopes: [OPERATOR] }) { apiKey { id } } }'
        expect(await failure(admin, raise, { id: apiKey.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
        for (const take of ['rotateApiKey(id: $id) { key }', 'revokeApiKey(id: $id) { apiKey { id } }'])
          expect(await failure(admin, `mutation ($id: ID!) { ${take} }`, { id: operator.apiKeyId })).toMatchObject({
            code: 'PERMISSION_DENIED',
          })
        expect(await createKey(operator, { name: 'second', scopes: ['OPERATOR'] })).toMatchObject({ key: expect.any(String) })
      })

      it('and an allowlist stays an upper bound', async () => {
        const { key } = await createKey(operator, { name: 'admin', scopes: ['ADMIN'], modelAllowlist: ['m'] })
        const admin = await principal(key)
        for (const modelAllowlist of [null, ['m', 'n']])
          expect(await failure(admin, create, { input: { name: 'x', modelAllowlist } })).toMatchObject({ code: 'PERMISSION_DENIED' })
        expect(await principal((await createKey(admin, { name: 'x' })).key)).toMatchObject({ modelAllowlist: ['m'] })
      })

      it('and nobody locks the organization out by mistake', async () => {
        const id = operator.apiKeyId
        for (const change of [
          'revokeApiKey(id: $id) { apiKey { id } }',
          'updateApiKey(input: { id: $id, scopes: [INFERENCE] }) { apiKey { id } }',
        ])
          expect(await failure(operator, `mutation ($id: ID!) { ${change} }`, { id })).toMatchObject({ code: 'IN_USE' })
      })

      for (const { what, input, code, param } of [
        { what: 'an empty name', input: { name: ' ' }, code: 'INVALID_REQUEST', param: 'name' },
        { what: 'a long name', input: { name: 'a'.repeat(101) }, code: 'STRING_ABOVE_MAX_LENGTH', param: 'name' },
        { what: 'no scope', input: { name: 'a', scopes: [] }, code: 'INVALID_REQUEST', param: 'scopes' },
        {
          what: 'no request a minute',
          input: { name: 'a', requestsPerMinute: 0 },
          code: 'INTEGER_BELOW_MIN_VALUE',
          param: 'requestsPerMinute',
        },
        {
          what: 'fewer than no token a minute',
          input: { name: 'a', tokensPerMinute: -1 },
          code: 'INTEGER_BELOW_MIN_VALUE',
          param: 'tokensPerMinute',
        },
        { what: 'a past expiry', input: { name: 'a', expiresAt: '2020-01-01T00:00:00Z' }, code: 'UNSUPPORTED_VALUE', param: 'expiresAt' },
        {
          what: 'an endless allowlist',
          input: { name: 'a', modelAllowlist: Array.from({ length: 201 }, (_, i) => `m${i}`) },
          code: 'ARRAY_ABOVE_MAX_LENGTH',
          param: 'modelAllowlist',
        },
      ])
        it(`and makes no key with ${what}`, async () => expect(await failure(operator, create, { input })).toMatchObject({ code, param }))
    })

    describe('limits what a key spends', () => {
      const FIELDS = 'id spendLimit { amount period spent held resetsAt }'
      const limited = async (spendLimit: unknown, caller: Caller = operator) => {
        const { key, apiKey } = await createKey(caller, { name: 'limited', spendLimit })
        return { id: apiKey.id, caller: await principal(key) }
      }
      const update = async (id: string, spendLimit: unknown, caller: Caller = operator) =>
        data(caller, `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { apiKey { ${FIELDS} } } }`, {
          input: { id, spendLimit },
        })
      const limitOf = async (id: string) =>
        ((await data(operator, `query ($id: ID!) { apiKey(id: $id) { ${FIELDS} } }`, { id })).apiKey as Answer).spendLimit
      /** 0.15 USD. */
      const MILLION = 1_000_000
      const spend = async (caller: Caller) => {
        const id = newHold()
        await place(caller, id, MILLION)
        await settle(caller, id, MILLION)
      }
      const placing = (caller: Caller) =>
        execute(
          caller,
          `mutation ($id: ID!) { placeHold(input: { id: $id, operation: EMBEDDING, modelId: "m", requestId: "r",
            rateCard: { version: "v", inputTokens: "0.15" }, ceiling: { inputTokens: ${MILLION} }, ttlSeconds: 60 }) { id } }`,
          { id: newHold() },
        )

      it('to the last nano-USD of the period, whoever asks at once, and says why', async () => {
        const { id, caller } = await limited({ amount: '0.749999999', period: 'DAY' })
        const results = await Promise.all(Array.from({ length: 40 }, () => placing(caller)))
        const refusals = results.flatMap(({ errors }) => errors ?? [])
        expect(refusals).toHaveLength(36)
        expect(refusals[0]!.extensions.code).toBe('INSUFFICIENT_QUOTA')
        expect(refusals[0]!.message).toBe(
          "The most that this call may cost does not fit the key's spend limit of 0.749999999 USD a day: 0 are spent and 0.6 held by calls under way, until 2026-11-22T00:00:00.000Z.",
        )
        expect(await limitOf(id)).toEqual({
          amount: '0.749999999',
          period: 'DAY',
          spent: '0',
          held: '0.6',
          resetsAt: '2026-11-22T00:00:00.000Z',
        })
      })

      it('by what it was charged, until the period ends', async () => {
        const { id, caller } = await limited({ amount: '0.3', period: 'DAY' })
        const hold = newHold()
        await place(caller, hold, 2 * MILLION)
        expect((await placing(caller)).errors).toHaveLength(1)
        await settle(caller, hold, MILLION)
        expect(await limitOf(id)).toMatchObject({ spent: '0.15', held: '0' })
        await spend(caller)
        expect((await placing(caller)).errors).toHaveLength(1)
        expect((await placing(operator)).errors).toBeUndefined()
        clock.advance(16 * 3_600_000)
        expect(await limitOf(id)).toMatchObject({ spent: '0', resetsAt: '2026-11-23T00:00:00.000Z' })
        await spend(caller)
      })

      it('with what it spent before it was limited, and no more once the limit is lifted', async () => {
        const { id, caller } = await limited(null)
        expect(await limitOf(id)).toBeNull()
        await spend(caller)
        await update(id, { amount: '0.2', period: 'MONTH' })
        expect(await limitOf(id)).toMatchObject({ spent: '0.15', resetsAt: '2026-12-01T00:00:00.000Z' })
        expect((await placing(caller)).errors).toHaveLength(1)
        await update(id, { amount: '0.3', period: 'TOTAL' })
        expect(await limitOf(id)).toMatchObject({ period: 'TOTAL', spent: '0.15', resetsAt: null })
        await spend(caller)
        expect((await placing(caller)).errors).toHaveLength(1)
        await update(id, null)
        await spend(caller)
      })

      it('also after a rotation, and forgets it when the key is revoked and nothing is under way', async () => {
        const { id, caller } = await limited({ amount: '0.3', period: 'TOTAL' })
        const hold = newHold()
        await place(caller, hold, MILLION)
        const rotated = (await data(operator, 'mutation ($id: ID!) { rotateApiKey(id: $id) { key } }', { id })).rotateApiKey as {
          key: string
        }
        expect(await limitOf(id)).toMatchObject({ amount: '0.3', held: '0.15' })
        expect(await principal(rotated.key)).toMatchObject({ apiKeyId: id })
        const counted = async () => Object.keys((await openCollections(store).wallets.findOne({ _id: operator.organizationId }))!.spending)
        const revoke = (key: string) => data(operator, 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', { id: key })
        await revoke(id)
        expect(await counted()).toEqual([id])
        const accepted = newHold()
        await place(caller, accepted, MILLION)
        expect((await placing(caller)).errors).toHaveLength(1)
        for (const open of [hold, accepted]) await settle(caller, open, MILLION)
        const other = await limited({ amount: '1', period: 'DAY' })
        await revoke(other.id)
        expect(await counted()).toEqual([])
      })

      it('and hands out no wider one', async () => {
        const { key, apiKey } = await createKey(operator, {
          name: 'admin',
          scopes: ['ADMIN'],
          spendLimit: { amount: '1', period: 'DAY' },
        })
        const admin = await principal(key)
        const denied = (spendLimit: unknown) =>
          failure(admin, 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }', {
            input: { name: 'k', spendLimit },
          })
        for (const wider of [null, { amount: '1.1', period: 'DAY' }, { amount: '1', period: 'TOTAL' }])
          expect(await denied(wider)).toMatchObject({ code: 'PERMISSION_DENIED' })
        const own = await createKey(admin, { name: 'own' })
        expect(await limitOf(own.apiKey.id)).toMatchObject({ amount: '1', period: 'DAY' })
        await update(own.apiKey.id, { amount: '0.5', period: 'DAY' }, admin)
        const free = await createKey(operator, { name: 'free' })
        for (const [id, field] of [
          [free.apiKey.id, 'rotateApiKey(id: $id) { key }'],
          [apiKey.id, 'updateApiKey(input: { id: $id, spendLimit: null }) { apiKey { id } }'],
        ])
          expect(await failure(admin, `mutation ($id: ID!) { ${field} }`, { id })).toMatchObject({ code: 'PERMISSION_DENIED' })
      })

      it.each(['-1', '9000000.000000001'])('refuses a limit of %s USD', async (amount) => {
        const input = { name: 'k', spendLimit: { amount, period: 'DAY' } }
        expect(
          await failure(operator, 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }', { input }),
        ).toMatchObject({ code: 'UNSUPPORTED_VALUE', param: 'spendLimit.amount' })
      })
    })

    describe('lets a caller see', () => {
      it('its own organization, wallet, entries and usage, at once after a call is settled', async () => {
        const { admin } = await tenant()
        const id = newHold()
        expect((await place(admin, id)).placeHold).toEqual({ id, state: 'PLACED', amount: '0.00015' })
        const dispatched = await data(
          admin,
          'mutation ($id: ID!) { dispatchHold(input: { id: $id, quantities: { inputTokens: 5 } }) { state } checkpointHold(input: { id: $id, quantities: { inputTokens: 6 }, ttlSeconds: 60 }) { state } }',
          { id },
        )
        expect(dispatched).toEqual({ dispatchHold: { state: 'DISPATCHED' }, checkpointHold: { state: 'DISPATCHED' } })
        expect((await settle(admin, id)).settleHold).toEqual({ state: 'SETTLED', charged: '0.000015', absorbed: '0' })
        const voided = newHold()
        await place(admin, voided)
        expect(await data(admin, 'mutation ($id: ID!) { voidHold(id: $id) { state charged } }', { id: voided })).toEqual({
          voidHold: { state: 'VOIDED', charged: '0' },
        })
        const answer = await data(
          admin,
          `{ usage { edges { node { id model { id } apiKey { name } operation quantities { unit quantity rate } amount rateCardVersion source requestId at } } }
             organization { name wallet { balance held available entries(first: 2) { pageInfo { hasNextPage } edges { node { kind amount held balance reference sequence } } } } } }`,
        )
        expect(answer.usage).toMatchObject({
          edges: [
            {
              node: {
                model: { id: 'gpt-4o-mini' },
                apiKey: { name: 'First admin key' },
                operation: 'CHAT_COMPLETION',
                quantities: [{ unit: 'INPUT_TOKENS', quantity: 100, rate: '0.15' }],
                amount: '0.000015',
                rateCardVersion: 'v1',
                source: 'PROVIDER',
                requestId: 'req_7',
                at: '2026-11-21T08:00:00.000Z',
              },
            },
          ],
        })
        expect(answer.organization).toEqual({
          name: 'Tenant',
          wallet: {
            balance: '4.999985',
            held: '0',
            available: '4.999985',
            entries: {
              pageInfo: { hasNextPage: true },
              edges: [
                { node: { kind: 'VOID', amount: '0', held: '-0.00015', balance: '4.999985', reference: voided, sequence: 5 } },
                { node: { kind: 'HOLD', amount: '0', held: '0.00015', balance: '4.999985', reference: voided, sequence: 4 } },
              ],
            },
          },
        })
      })

      it('its usage page by page, by model, key and time', async () => {
        const { admin } = await tenant()
        const other = { ...admin, apiKeyId: (await createKey(admin, { name: 'other' })).apiKey.id }
        const times: string[] = []
        for (const caller of [admin, other, admin]) {
          times.push(clock.now().toISOString())
          const id = newHold()
          await place(caller, id)
          await settle(caller, id)
          clock.advance(1_000)
        }
        const source =
          'query ($first: Int, $after: String, $filter: UsageFilter) { usage(first: $first, after: $after, filter: $filter) { pageInfo { hasNextPage endCursor } edges { node { at } } } }'
        type Usage = { pageInfo: { hasNextPage: boolean; endCursor: string }; edges: { node: { at: string } }[] }
        const page = async (variables: object) => {
          const usage = (await data(admin, source, { ...variables })).usage as Usage
          return { ...usage.pageInfo, at: usage.edges.map((edge) => edge.node.at) }
        }
        const first = await page({ first: 2 })
        expect(first).toMatchObject({ hasNextPage: true, at: [times[2], times[1]] })
        expect(await page({ first: 2, after: first.endCursor })).toMatchObject({ hasNextPage: false, at: [times[0]] })
        expect((await page({ filter: { apiKeyId: other.apiKeyId } })).at).toEqual([times[1]])
        expect((await page({ filter: { modelId: 'gpt-4o-mini', apiKeyId: admin.apiKeyId } })).at).toEqual([times[2], times[0]])
        expect((await page({ filter: { modelId: 'none' } })).at).toEqual([])
        expect((await page({ filter: { since: times[1], until: times[2] } })).at).toEqual([times[1]])
        expect((await page({ after: first.endCursor, filter: { until: times[2], since: times[0] } })).at).toEqual([times[0]])
        expect(await failure(admin, source, { after: 'nonsense' })).toMatchObject({ code: 'INVALID_REQUEST', param: 'after' })
        expect(await failure(admin, source, { first: 0 })).toMatchObject({ code: 'INTEGER_BELOW_MIN_VALUE', param: 'first' })
      })

      it('its keys, newest first, and no secret among them', async () => {
        const made = [await createKey(operator, { name: 'a' }), await createKey(operator, { name: 'b' })]
        const source =
          'query ($after: String) { organization { apiKeys(first: 2, after: $after) { pageInfo { endCursor hasPreviousPage } edges { node { id name last4 } } } } }'
        type Keys = {
          apiKeys: { pageInfo: { endCursor: string; hasPreviousPage: boolean }; edges: { node: { name: string; last4: string } }[] }
        }
        const first = (await data(operator, source)).organization as Keys
        expect(first.apiKeys.edges.map((edge) => edge.node.name)).toEqual(['b', 'a'])
        expect(first.apiKeys.edges[0]!.node.last4).toBe(made[1]!.key.slice(-4))
        const second = (await data(operator, source, { after: first.apiKeys.pageInfo.endCursor })).organization as Keys
        expect(second.apiKeys).toMatchObject({ pageInfo: { hasPreviousPage: true }, edges: [{ node: { name: 'Operator' } }] })
      })

      it('by reference only what is its own, and an operator everything', async () => {
        const [owner, other] = [await tenant(), await tenant()]
        const id = newHold()
        await place(owner.admin, id)
        await settle(owner.admin, id)
        const usage = (await data(owner.admin, '{ usage { edges { node { id } } } }')).usage as { edges: { node: { id: string } }[] }
        const representations = [
          { __typename: 'Organization', id: owner.id },
          { __typename: 'ApiKey', id: owner.admin.apiKeyId },
          { __typename: 'UsageRecord', id: usage.edges[0]!.node.id },
        ]
        const source =
          'query ($representations: [_Any!]!) { _entities(representations: $representations) { ... on Organization { id wallet { balance } } ... on ApiKey { id } ... on UsageRecord { id } } }'
        const ids = async (caller: Caller | null) =>
          ((await data(caller, source, { representations }))._entities as ({ id: string } | null)[]).map((entity) => entity?.id ?? null)
        const own = representations.map((reference) => reference.id)
        expect(await ids(owner.admin)).toEqual(own)
        expect(await ids(operator)).toEqual(own)
        expect(await ids(other.admin)).toEqual([null, null, null])
        expect(await failure(null, source, { representations })).toMatchObject({ code: 'INVALID_API_KEY' })
        expect(await data(other.admin, 'query ($id: ID!) { apiKey(id: $id) { id } }', { id: owner.admin.apiKeyId })).toEqual({
          apiKey: null,
        })
        for (const change of [
          'rotateApiKey(id: $id) { key }',
          'revokeApiKey(id: $id) { apiKey { id } }',
          'updateApiKey(input: { id: $id, name: "x" }) { apiKey { id } }',
        ])
          expect(await failure(other.admin, `mutation ($id: ID!) { ${change} }`, { id: owner.admin.apiKeyId })).toMatchObject({
            code: 'NOT_FOUND',
          })
      })
    })

    it('changes an organization for its admin, and its plan for the operator', async () => {
      const { id, admin } = await tenant()
      const update = 'mutation { updateOrganization(input: { residencyPolicy: LOCAL_ONLY }) { organization { name residencyPolicy } } }'
      expect((await data(admin, update)).updateOrganization).toEqual({ organization: { name: 'Tenant', residencyPolicy: 'LOCAL_ONLY' } })
      const assign =
        'mutation ($id: ID!, $plan: String!) { assignPlan(input: { organizationId: $id, plan: $plan }) { organization { name residencyPolicy plan { code vectors } } } }'
      expect((await data(operator, assign, { id, plan: 'small' })).assignPlan).toEqual({
        organization: { name: 'Tenant', residencyPolicy: 'LOCAL_ONLY', plan: { code: 'small', vectors: 100 } },
      })
      expect(await failure(operator, assign, { id, plan: 'none' })).toMatchObject({ code: 'UNSUPPORTED_VALUE', param: 'plan' })
      expect(await failure(operator, assign, { id: 'org_none', plan: 'small' })).toMatchObject({ code: 'NOT_FOUND' })
      const listed = (await data(operator, '{ plans { code } organizations { edges { node { id residencyPolicy } } } }')) as Record<
        string,
        unknown
      >
      expect(listed.plans).toEqual([{ code: 'self-hosted' }, { code: 'small' }])
      expect(listed.organizations).toMatchObject({
        edges: [
          { node: { id, residencyPolicy: 'LOCAL_ONLY' } },
          { node: { id: operator.organizationId, residencyPolicy: 'UNRESTRICTED' } },
        ],
      })
    })

    it('adds and corrects credit for the operator, once per reference', async () => {
      const { id } = await tenant()
      const source = (mutation: string) =>
        `mutation ($amount: USD!) { ${mutation}(input: { organizationId: "${id}", amount: $amount, reference: "r" }) { entry { id kind amount balance } wallet { balance } } }`
      const first = await data(operator, source('adjustWallet'), { amount: '-0.5' })
      expect(first.adjustWallet).toMatchObject({
        entry: { kind: 'ADJUSTMENT', amount: '-0.5', balance: '4.5' },
        wallet: { balance: '4.5' },
      })
      await restart()
      expect(await data(operator, source('adjustWallet'), { amount: '-0.5' })).toEqual(first)
      expect(await failure(operator, source('topUpWallet'), { amount: '0.5' })).toMatchObject({
        code: 'IDEMPOTENCY_CONFLICT',
        param: 'reference',
      })
      expect(await failure(operator, source('topUpWallet'), { amount: '-1' })).toMatchObject({ code: 'UNSUPPORTED_VALUE', param: 'amount' })
    })

    it('answers every field by its scope', async () => {
      const { admin } = await tenant()
      const limited = principalOf(
        admin.organizationId,
        SCOPES.filter((scope) => !['admin', 'operator', 'billing:read'].includes(scope)),
      )
      const hold = `{ id: "${newHold()}", quantities: {} }`
      const operations: readonly { source: string; scope: 'any' | 'admin' | 'billing:read' | 'operator' | 'service' }[] = [
        { source: '{ organization { id name plan { code } } }', scope: 'any' },
        { source: '{ organization { wallet { balance } } }', scope: 'billing:read' },
        { source: '{ organization { apiKeys { edges { cursor } } } }', scope: 'admin' },
        { source: '{ usage { edges { cursor } } }', scope: 'billing:read' },
        { source: '{ apiKey(id: "key_1") { id } }', scope: 'admin' },
        { source: '{ organizations { edges { cursor } } }', scope: 'operator' },
        { source: '{ plans { code } }', scope: 'operator' },
        { source: '{ principalOfApiKey(apiKey: "x") { apiKeyId } }', scope: 'service' },
        { source: '{ principalOfKey(organizationId: "x", apiKeyId: "x") { apiKeyId } }', scope: 'service' },
        { source: 'mutation { createApiKey(input: { name: "a" }) { key } }', scope: 'admin' },
        { source: 'mutation { updateApiKey(input: { id: "key_1" }) { apiKey { id } } }', scope: 'admin' },
        { source: 'mutation { rotateApiKey(id: "key_1") { key } }', scope: 'admin' },
        { source: 'mutation { revokeApiKey(id: "key_1") { apiKey { id } } }', scope: 'admin' },
        { source: 'mutation { updateOrganization(input: {}) { organization { id } } }', scope: 'admin' },
        { source: 'mutation { createOrganization(input: { name: "a" }) { key } }', scope: 'operator' },
        { source: 'mutation { assignPlan(input: { organizationId: "x", plan: "small" }) { organization { id } } }', scope: 'operator' },
        {
          source: 'mutation { topUpWallet(input: { organizationId: "x", amount: "1", reference: "a" }) { entry { id } } }',
          scope: 'operator',
        },
        {
          source: 'mutation { adjustWallet(input: { organizationId: "x", amount: "1", reference: "a" }) { entry { id } } }',
          scope: 'operator',
        },
        { source: `mutation { dispatchHold(input: ${hold}) { id } }`, scope: 'any' },
        { source: `mutation { voidHold(id: "${newHold()}") { id } }`, scope: 'any' },
      ]
      const callers: readonly { caller: Caller | null; may: readonly string[]; otherwise: string }[] = [
        { caller: null, may: [], otherwise: 'INVALID_API_KEY' },
        { caller: GATEWAY, may: ['service'], otherwise: 'INVALID_API_KEY' },
        { caller: limited, may: ['any'], otherwise: 'PERMISSION_DENIED' },
        { caller: admin, may: ['any', 'admin', 'billing:read'], otherwise: 'PERMISSION_DENIED' },
        { caller: operator, may: ['any', 'admin', 'billing:read', 'operator'], otherwise: 'PERMISSION_DENIED' },
      ]
      for (const { caller, may, otherwise } of callers)
        for (const { source, scope } of operations) {
          const code = (await failure(caller, source))?.code
          // That an API key is unknown is an answer to the gateway, not a refusal of the gateway.
          if (may.includes(scope)) expect(['PERMISSION_DENIED', caller === GATEWAY ? '' : 'INVALID_API_KEY'], source).not.toContain(code)
          else expect({ source, code }).toEqual({ source, code: scope === 'service' ? 'PERMISSION_DENIED' : otherwise })
        }
    })

    it('says that it can serve', async () => expect(await billing.problems()).toEqual([]))
  })
