import { randomBytes } from 'node:crypto'
import { graphql } from 'graphql'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../test/support/document-stores.ts'
import { FileChecks } from '../common/adapters/sqlite/full-checks.ts'
import { type Caller, PRINCIPAL_FIELDS, type Principal, type PrincipalResult, principalFrom, SCOPES } from '../common/identity/principal.ts'
import type { DocumentStore } from '../common/ports/document-store.ts'
import { idSource } from '../common/process/ids.ts'
import { silentLog } from '../common/process/log.ts'
import { apiKeyFrom } from './accounts/domain/api-key.ts'
import { MAX_ANCESTORS } from './accounts/use-cases/create-api-key.ts'
import { type Billing, billingOn } from './billing.ts'
import { createPrincipal, ManualClock, SELF_HOSTED, SMALL_PLAN, TEST_MARK } from './test-support/world.ts'
import { openCollections } from './use-cases/tables.ts'

const WEBHOOKS = { egressAllowed: new Set<string>(), publicUrl: null, retryBackoffMs: 1_000 }
const GATEWAY: Caller = { service: 'gateway' }
/** Tests compare results with the expected ones, so their fields need no types. */
type ResultData = Record<string, unknown>

/** Returns the store for one billing, which leaves it open. */
function shared(store: DocumentStore): DocumentStore {
  return { collection: (spec) => store.collection(spec), ping: (signal) => store.ping(signal), async [Symbol.asyncDispose]() {} }
}

const SECRET = new Uint8Array(32).fill(7)

for (const { name, open } of STORES)
  describe(`Billing subgraph on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let billing: Billing
    let operator: Principal

    const config = { bootstrapApiKey: null, bootstrapCreditNanoUsd: 0n, secret: SECRET, plans: [SELF_HOSTED, SMALL_PLAN], ...WEBHOOKS }
    const billingOf = (of: DocumentStore, more: Partial<Parameters<typeof billingOn>[1]>) =>
      billingOn(
        async () => shared(of),
        { ...config, ...more },
        {
          clock,
          ids: idSource(clock),
          log: silentLog,
          mark: TEST_MARK,
          files: new FileChecks([]),
        },
      )
    const start = async (bootstrapApiKey: string | null = null) => {
      const started = billingOf(store, { bootstrapApiKey, bootstrapCreditNanoUsd: 100_000_000_000n })
      await started.opened
      return started
    }
    const restart = async (bootstrapApiKey?: string) => {
      await billing[Symbol.asyncDispose]()
      billing = await start(bootstrapApiKey)
    }
    const execute = (caller: Caller | null, source: string, variableValues: Record<string, unknown> = {}) => {
      const context = { caller, requestId: 'req_1', signal: new AbortController().signal }
      return graphql({ schema: billing.schema, source, variableValues, contextValue: billing.toResolverContext(context) })
    }
    const data = async (caller: Caller | null, source: string, variables?: Record<string, unknown>) => {
      const result = await execute(caller, source, variables)
      expect(result.errors).toBeUndefined()
      return JSON.parse(JSON.stringify(result.data)) as ResultData
    }
    const failure = async (caller: Caller | null, source: string, variables?: Record<string, unknown>) =>
      (await execute(caller, source, variables)).errors?.[0]?.extensions
    const principal = async (apiKey: string) => {
      const result = await data(GATEWAY, `query ($apiKey: String!) { principalOfApiKey(apiKey: $apiKey) { ${PRINCIPAL_FIELDS} } }`, {
        apiKey,
      })
      return principalFrom(result.principalOfApiKey as PrincipalResult)
    }
    const refused = (apiKey: string) =>
      failure(GATEWAY, 'query ($apiKey: String!) { principalOfApiKey(apiKey: $apiKey) { apiKeyId } }', { apiKey })
    const createKey = async (caller: Caller, input: Record<string, unknown>) =>
      (await data(caller, 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id } } }', { input }))
        .createApiKey as { key: string; apiKey: { id: string } }
    /** Creates a second organization with some credit. */
    const tenant = async () => {
      const created = (await data(operator, 'mutation { createOrganization(input: { name: "Tenant" }) { key organization { id } } }'))
        .createOrganization as { key: string; organization: { id: string } }
      await data(
        operator,
        'mutation ($id: ID!) { topUpWallet(input: { organizationId: $id, amount: "5", reference: "p" }) { entry { id } } }',
        {
          id: created.organization.id,
        },
      )
      return { id: created.organization.id, admin: await principal(created.key) }
    }
    const newHold = () => idSource(clock)('hold')
    /** Returns the key's principal by the rules now in force. */
    const current = async ({ organizationId, apiKeyId }: Principal) => {
      const query = `query ($organizationId: ID!, $apiKeyId: ID!) { principalOfKey(organizationId: $organizationId, apiKeyId: $apiKeyId) { ${PRINCIPAL_FIELDS} } }`
      return principalFrom((await data(GATEWAY, query, { organizationId, apiKeyId })).principalOfKey as PrincipalResult)
    }
    const placeHold = async (caller: Principal, id: string, tokens = 1_000) =>
      data(
        await current(caller),
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

    describe('first start', () => {
      it('creates an organization with credit and the key of its operator', async () => {
        expect(operator).toMatchObject({ scopes: ['admin', 'operator'], residencyPolicy: 'unrestricted', plan: SELF_HOSTED })
        const result = await data(
          operator,
          '{ organization { name plan { code } wallet { balance held available entries { edges { node { kind reference sequence } } } } } }',
        )
        expect(result.organization).toMatchObject({
          plan: { code: 'self-hosted' },
          wallet: {
            balance: '100',
            held: '0',
            available: '100',
            entries: { edges: [{ node: { kind: 'TOP_UP', reference: 'bootstrap', sequence: 1 } }] },
          },
        })
      })

      it('shows the same key at each start until the key is used', async () => {
        await restart()
        expect(await billing.bootstrapKey).toBeNull()
        const fresh = await open()
        const keys: (string | null)[] = []
        for (let i = 0; i < 3; i++) {
          await using unused = billingOf(fresh, {})
          keys.push(await unused.bootstrapKey)
        }
        expect(new Set(keys).size).toBe(1)
        expect(keys[0]).not.toBeNull()
        await fresh[Symbol.asyncDispose]()
      })

      it('accepts the key that the operator supplies, and does not show it', async () => {
        await using fresh = await open()
        const key = apiKeyFrom(randomBytes(32))
        const source = `{ principalOfApiKey(apiKey: "${key}") { scopes } }`
        for (const bootstrapApiKey of [key, key, apiKeyFrom(randomBytes(32)), null]) {
          await using started = billingOf(fresh, { bootstrapApiKey })
          expect(await started.bootstrapKey).toBeNull()
          const context = started.toResolverContext({ caller: GATEWAY, requestId: 'req_1', signal: new AbortController().signal })
          expect((await graphql({ schema: started.schema, source, contextValue: context })).errors).toBeUndefined()
        }
      })

      it('does not start without the plan of its first organization', () => {
        expect(() => billingOf(store, { plans: [SMALL_PLAN] })).toThrow('self-hosted')
      })
    })

    describe('API key authentication', () => {
      it('accepts a key until it is rotated, revoked or expires, with one error for every failure', async () => {
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
        const refusals = [await refused(key), await refused(apiKeyFrom(randomBytes(32))), await refused('nonsense')]
        clock.advance(60_000)
        refusals.push(await refused(rotated.key))
        const other = await createKey(operator, { name: 'b' })
        const revoke = 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { revokedAt } } }'
        const revoked = await data(operator, revoke, { id: other.apiKey.id })
        clock.advance(1_000)
        expect(await data(operator, revoke, { id: other.apiKey.id })).toEqual(revoked)
        refusals.push(await refused(other.key))
        for (const result of refusals) expect(result).toEqual(refusals[0])
        expect(refusals[0]).toMatchObject({ code: 'INVALID_API_KEY' })
        for (const change of ['rotateApiKey(id: $id) { key }', 'updateApiKey(input: { id: $id, name: "c" }) { apiKey { id } }'])
          expect(await failure(operator, `mutation ($id: ID!) { ${change} }`, { id: other.apiKey.id })).toMatchObject({
            code: 'INVALID_REQUEST',
          })
      })

      it('verifies the key of accepted work after the key was revoked, but not for another organization', async () => {
        const { admin } = await tenant()
        const { apiKey } = await createKey(admin, { name: 'a', modelAllowlist: ['m'] })
        await data(admin, 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', { id: apiKey.id })
        const source = `query ($organizationId: ID!, $apiKeyId: ID!) { principalOfKey(organizationId: $organizationId, apiKeyId: $apiKeyId) { ${PRINCIPAL_FIELDS} } }`
        const query = (organizationId: string) => data(GATEWAY, source, { organizationId, apiKeyId: apiKey.id })
        expect((await query(admin.organizationId)).principalOfKey).toMatchObject({ apiKeyId: apiKey.id, modelAllowlist: ['m'] })
        expect((await query(operator.organizationId)).principalOfKey).toBeNull()
        expect((await query('org_none')).principalOfKey).toBeNull()
      })

      it('preserves the fields of a key that a change does not name', async () => {
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

    it("limits a key per minute to the lower of its own and its plan's limits", async () => {
      const { id, admin } = await tenant()
      await data(operator, 'mutation ($id: ID!) { assignPlan(input: { organizationId: $id, plan: "small" }) { organization { id } } }', {
        id,
      })
      const created = await createKey(admin, { name: 'slow', requestsPerMinute: 10, tokensPerMinute: 500 })
      expect(await principal(created.key)).toMatchObject({ requestsPerMinute: 10, tokensPerMinute: 500 })
      const change = `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { apiKey { requestsPerMinute tokensPerMinute } } }`
      const changed = await data(admin, change, { input: { id: created.apiKey.id, requestsPerMinute: 1_000, tokensPerMinute: null } })
      expect(changed).toEqual({ updateApiKey: { apiKey: { requestsPerMinute: 1_000, tokensPerMinute: null } } })
      expect(await principal(created.key)).toMatchObject({ requestsPerMinute: SMALL_PLAN.requestsPerMinute, tokensPerMinute: null })
      await data(admin, change, { input: { id: created.apiKey.id, name: 'still slow' } })
      expect(await data(admin, '{ organization { apiKeys { edges { node { name requestsPerMinute } } } } }')).toMatchObject({
        organization: { apiKeys: { edges: expect.arrayContaining([{ node: { name: 'still slow', requestsPerMinute: 1_000 } }]) } },
      })
    })

    describe('delegation of scopes', () => {
      const create = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }'

      it('only an operator creates, changes or takes over an operator', async () => {
        const { key, apiKey } = await createKey(operator, { name: 'admin', scopes: ['ADMIN'] })
        const admin = await principal(key)
        expect(await failure(admin, create, { input: { name: 'x', scopes: ['OPERATOR'] } })).toMatchObject({ code: 'PERMISSION_DENIED' })
        const raise = 'mutation ($id: ID!) { updateApiKey(input: { id: $id, scopes: [OPERATOR] }) { apiKey { id } } }'
        expect(await failure(admin, raise, { id: apiKey.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
        for (const mutation of ['rotateApiKey(id: $id) { key }', 'revokeApiKey(id: $id) { apiKey { id } }'])
          expect(await failure(admin, `mutation ($id: ID!) { ${mutation} }`, { id: operator.apiKeyId })).toMatchObject({
            code: 'PERMISSION_DENIED',
          })
        expect(await createKey(operator, { name: 'second', scopes: ['OPERATOR'] })).toMatchObject({ key: expect.any(String) })
      })

      it('an access token with fewer scopes than its key gets no more of them', async () => {
        const token: Principal = { ...operator, scopes: ['admin'] }
        const { apiKey } = await createKey(operator, { name: 'second', scopes: ['OPERATOR'] })
        const denied = { code: 'PERMISSION_DENIED' }
        expect(await failure(token, create, { input: { name: 'x', scopes: ['OPERATOR'] } })).toMatchObject(denied)
        for (const id of [operator.apiKeyId, apiKey.id])
          for (const mutation of [
            'rotateApiKey(id: $id) { key }',
            'revokeApiKey(id: $id) { apiKey { id } }',
            'updateApiKey(input: { id: $id, name: "mine" }) { apiKey { id } }',
          ])
            expect(await failure(token, `mutation ($id: ID!) { ${mutation} }`, { id })).toMatchObject(denied)
        const plain = await createKey(token, { name: 'plain', scopes: ['ADMIN'] })
        const raise = 'mutation ($id: ID!) { updateApiKey(input: { id: $id, scopes: [OPERATOR] }) { apiKey { id } } }'
        expect(await failure(token, raise, { id: plain.apiKey.id })).toMatchObject(denied)
        await data(token, 'mutation ($id: ID!) { rotateApiKey(id: $id) { key } }', { id: plain.apiKey.id })
      })

      it('the allowlist of a key limits the keys that it creates', async () => {
        const { key } = await createKey(operator, { name: 'admin', scopes: ['ADMIN'], modelAllowlist: ['m'] })
        const admin = await principal(key)
        for (const modelAllowlist of [null, ['m', 'n']])
          expect(await failure(admin, create, { input: { name: 'x', modelAllowlist } })).toMatchObject({ code: 'PERMISSION_DENIED' })
        expect(await principal((await createKey(admin, { name: 'x' })).key)).toMatchObject({ modelAllowlist: ['m'] })
      })

      it('nobody locks the organization out by mistake', async () => {
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
          what: 'fewer than zero tokens a minute',
          input: { name: 'a', tokensPerMinute: -1 },
          code: 'INTEGER_BELOW_MIN_VALUE',
          param: 'tokensPerMinute',
        },
        { what: 'a past expiry', input: { name: 'a', expiresAt: '2020-01-01T00:00:00Z' }, code: 'UNSUPPORTED_VALUE', param: 'expiresAt' },
        {
          what: 'an unlimited allowlist',
          input: { name: 'a', modelAllowlist: Array.from({ length: 201 }, (_, i) => `m${i}`) },
          code: 'ARRAY_ABOVE_MAX_LENGTH',
          param: 'modelAllowlist',
        },
      ])
        it(`creates no key with ${what}`, async () => expect(await failure(operator, create, { input })).toMatchObject({ code, param }))
    })

    describe('limited keys', () => {
      const LIMITS = { expiresAt: '2027-01-01T00:00:00.000Z', requestsPerMinute: 10, tokensPerMinute: 1_000 }
      const UPDATE = 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { apiKey { id } } }'
      const CREATE = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }'
      const createLimitedKey = async () => {
        const { key, apiKey } = await createKey(operator, { name: 'bounded', scopes: ['ADMIN'], ...LIMITS })
        return { id: apiKey.id, admin: await principal(key) }
      }
      const wider = [
        { expiresAt: null },
        { expiresAt: '2027-01-01T00:00:01Z' },
        { requestsPerMinute: null },
        { requestsPerMinute: 11 },
        { tokensPerMinute: null },
        { tokensPerMinute: 1_001 },
      ]
      const denied = { code: 'PERMISSION_DENIED' }

      it.each(wider)('cannot grant %o to itself or to another key', async (more) => {
        const { id, admin } = await createLimitedKey()
        expect(await failure(admin, UPDATE, { input: { id, ...more } })).toMatchObject(denied)
        expect(await failure(admin, CREATE, { input: { name: 'k', ...LIMITS, ...more } })).toMatchObject(denied)
        const child = await createKey(admin, { name: 'k' })
        expect(await failure(admin, UPDATE, { input: { id: child.apiKey.id, ...more } })).toMatchObject(denied)
      })

      it('creates keys with its own limits by default, and can tighten them', async () => {
        const { admin } = await createLimitedKey()
        const { key, apiKey } = await createKey(admin, { name: 'k' })
        const fields = 'expiresAt requestsPerMinute tokensPerMinute'
        expect((await data(operator, `query ($id: ID!) { apiKey(id: $id) { ${fields} } }`, { id: apiKey.id })).apiKey).toEqual(LIMITS)
        await data(admin, UPDATE, { input: { id: apiKey.id, expiresAt: '2026-12-01T00:00:00Z', requestsPerMinute: 1, tokensPerMinute: 1 } })
        expect(await principal(key)).toMatchObject({ requestsPerMinute: 1, tokensPerMinute: 1 })
      })

      it.each(['rotateApiKey', 'revokeApiKey'])('cannot call %s for a key that is not limited', async (mutation) => {
        const { admin } = await createLimitedKey()
        const { apiKey } = await createKey(operator, { name: 'k', scopes: ['INFERENCE'] })
        const text = `mutation ($id: ID!) { ${mutation}(id: $id) { apiKey { id } } }`
        expect(await failure(admin, text, { id: apiKey.id })).toMatchObject(denied)
      })

      it('applies its rates to the calls of all descendant keys, and takes over no key whose calls do not count against them', async () => {
        const { id, admin } = await createLimitedKey()
        const free = await createKey(operator, { name: 'free', requestsPerMinute: 1, tokensPerMinute: 1, expiresAt: LIMITS.expiresAt })
        const rotate = 'mutation ($id: ID!) { rotateApiKey(id: $id) { key } }'
        expect(await failure(admin, rotate, { id: free.apiKey.id })).toMatchObject(denied)
        const child = await createKey(admin, { name: 'child', scopes: ['ADMIN'], requestsPerMinute: 5 })
        const grandchild = await createKey(await principal(child.key), { name: 'grandchild' })
        const { key } = (await data(admin, rotate, { id: grandchild.apiKey.id })).rotateApiKey as { readonly key: string }
        await data(operator, UPDATE, { input: { id, requestsPerMinute: 2, tokensPerMinute: null } })
        expect(await principal(key)).toMatchObject({
          requestsPerMinute: 5,
          ancestorRates: [
            { apiKeyId: id, requestsPerMinute: 2, tokensPerMinute: null },
            { apiKeyId: child.apiKey.id, requestsPerMinute: 5, tokensPerMinute: LIMITS.tokensPerMinute },
          ],
        })
      })

      it('ends together with all its descendants, and with those keys alone', async () => {
        const chain = [await createKey(operator, { name: 'leaked', scopes: ['ADMIN'] })]
        for (const name of ['child', 'grandchild'])
          chain.push(await createKey(await principal(chain.at(-1)!.key), { name, scopes: ['ADMIN'] }))
        const other = await createKey(operator, { name: 'other' })
        const callers = await Promise.all(chain.map(({ key }) => principal(key)))
        const child = { organizationId: operator.organizationId, apiKeyId: chain[1]!.apiKey.id }
        const isEnded = async () =>
          (
            (
              await data(
                GATEWAY,
                'query ($organizationId: ID!, $apiKeyId: ID!) { principalOfKey(organizationId: $organizationId, apiKeyId: $apiKeyId) { isEnded } }',
                child,
              )
            ).principalOfKey as ResultData
          ).isEnded
        expect(await isEnded()).toBe(false)
        // Only the revocation's first write: all descendants have ended, even if the process dies after it.
        await openCollections(store).apiKeys.findOneAndUpdate({ _id: chain[0]!.apiKey.id }, { $set: { revokedAt: clock.now() } })
        for (const { key } of chain) expect(await refused(key)).toMatchObject({ code: 'INVALID_API_KEY' })
        expect(await isEnded()).toBe(true)
        for (const caller of callers)
          expect(await failure(caller, CREATE, { input: { name: 'k' } })).toMatchObject({ code: 'INVALID_API_KEY' })
        expect(await principal(other.key)).toMatchObject({ apiKeyId: other.apiKey.id })

        const revoke = () => data(operator, 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', { id: chain[0]!.apiKey.id })
        await revoke()
        await revoke()
        const revokedAt = async (id: string) => (await data(operator, 'query ($id: ID!) { apiKey(id: $id) { revokedAt } }', { id })).apiKey
        for (const { apiKey } of chain) expect(await revokedAt(apiKey.id)).toEqual({ revokedAt: clock.now().toISOString() })
        expect(await revokedAt(other.apiKey.id)).toEqual({ revokedAt: null })
      })

      it('ends when one of its ancestors expires', async () => {
        const parent = await createKey(operator, { name: 'parent', scopes: ['ADMIN'] })
        const child = await createKey(await principal(parent.key), { name: 'child' })
        await data(operator, UPDATE, { input: { id: parent.apiKey.id, expiresAt: '2026-11-21T09:00:00Z' } })
        expect(await principal(child.key)).toMatchObject({ ancestors: [operator.apiKeyId, parent.apiKey.id] })
        clock.advance(3_600_000)
        expect(await refused(child.key)).toMatchObject({ code: 'INVALID_API_KEY' })
      })

      it('cannot revoke its ancestor, which would end itself', async () => {
        const parent = await createKey(operator, { name: 'parent', scopes: ['ADMIN'] })
        const child = await createKey(await principal(parent.key), { name: 'child', scopes: ['ADMIN'] })
        expect(
          await failure(await principal(child.key), 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', {
            id: parent.apiKey.id,
          }),
        ).toMatchObject({ code: 'IN_USE', param: 'id' })
        expect(await principal(parent.key)).toMatchObject({ apiKeyId: parent.apiKey.id })
      })

      it('cannot create keys once it has eight ancestors', async () => {
        let caller = operator
        for (let depth = 1; depth <= MAX_ANCESTORS; depth++)
          caller = await principal((await createKey(caller, { name: `level ${depth}`, scopes: ['ADMIN'] })).key)
        expect(await failure(caller, CREATE, { input: { name: 'one more' } })).toMatchObject({ code: 'INVALID_REQUEST' })
      })

      it('is checked as it is stored, whatever its principal says', async () => {
        const { id, admin } = await createLimitedKey()
        await data(operator, UPDATE, { input: { id, scopes: ['INFERENCE'] } })
        expect(await failure(admin, CREATE, { input: { name: 'k' } })).toMatchObject(denied)
        await data(operator, 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', { id })
        expect(await failure(admin, CREATE, { input: { name: 'k' } })).toMatchObject({ code: 'INVALID_API_KEY' })
      })
    })

    it('shows other keys to admins only, including in the usage', async () => {
      const { key } = await createKey(operator, { name: 'reader', scopes: ['INFERENCE', 'BILLING_READ'] })
      const reader = await principal(key)
      for (const caller of [operator, reader]) {
        const hold = newHold()
        await placeHold(caller, hold)
        await data(caller, 'mutation ($id: ID!) { dispatchHold(input: { id: $id, quantities: {} }) { state } }', { id: hold })
        await settle(caller, hold)
      }
      const listKeys = async (caller: Caller) => {
        const usage = (await data(caller, '{ usage { edges { node { apiKey { id } } } } }')).usage as ResultData
        return (usage.edges as { node: { apiKey: { id: string } | null } }[]).map(({ node }) => node.apiKey?.id).sort()
      }
      expect(await listKeys(reader)).toEqual([reader.apiKeyId, undefined])
      expect(await listKeys(operator)).toEqual([operator.apiKeyId, reader.apiKeyId].sort())
      const listGroups = async (caller: Caller) => {
        const { groups } = (await data(caller, '{ usageSummary(groupBy: [KEY]) { groups { apiKeyId } } }')).usageSummary as ResultData
        return (groups as { apiKeyId: string | null }[]).map(({ apiKeyId }) => apiKeyId ?? '').sort()
      }
      expect(await listGroups(reader)).toEqual(['', reader.apiKeyId])
      expect(await listGroups(operator)).toEqual([operator.apiKeyId, reader.apiKeyId].sort())
    })

    describe('holds under the current rules', () => {
      const PLACE_HOLD = `mutation ($id: ID!) { placeHold(input: { id: $id, operation: EMBEDDING, modelId: "m", requestId: "r",
        rateCard: { version: "v" }, ceiling: {}, ttlSeconds: 60 }) { id } }`
      const DISPATCH = 'mutation ($id: ID!) { dispatchHold(input: { id: $id, quantities: {} }) { state } }'
      const change = (field: string) => (caller: Caller, id: string) =>
        data(caller, `mutation ($id: ID!) { updateApiKey(input: { id: $id, ${field} }) { apiKey { id } } }`, { id })
      const organization = (field: string) => (caller: Caller) =>
        data(caller, `mutation { updateOrganization(input: { ${field} }) { organization { id } } }`)
      const mutate = (field: string) => (caller: Caller, id: string) =>
        data(caller, `mutation ($id: ID!) { ${field}(id: $id) { apiKey { id } } }`, { id })

      it.each<[string, (caller: Caller, id: string) => Promise<unknown>]>([
        ['the residency policy', organization('residencyPolicy: LOCAL_ONLY')],
        [
          'the plan',
          () =>
            data(operator, 'mutation ($id: ID!) { assignPlan(input: { organizationId: $id, plan: "small" }) { organization { id } } }', {
              id: operator.organizationId,
            }),
        ],
        ['an allowlist', change('modelAllowlist: []')],
        ['scopes', change('scopes: [KNOWLEDGE_READ]')],
        ['rates', change('requestsPerMinute: 1')],
        ['an expiry', change('expiresAt: "2027-01-01T00:00:00Z"')],
        ['a spend limit', change('spendLimit: { amount: "1", period: DAY }')],
        ['the secret', mutate('rotateApiKey')],
        ['a key, by its revocation,', mutate('revokeApiKey')],
      ])('after a change of %s, an older principal places and dispatches no holds', async (_what, changed) => {
        const { key, apiKey } = await createKey(operator, { name: 'k', scopes: ['INFERENCE'] })
        const caller = await principal(key)
        const placed = newHold()
        await data(caller, PLACE_HOLD, { id: placed })
        await changed(operator, apiKey.id)
        const stale = { code: 'SERVICE_UNAVAILABLE', isStalePrincipal: true }
        expect(await failure(caller, DISPATCH, { id: placed })).toMatchObject(stale)
        expect(await failure(caller, PLACE_HOLD, { id: newHold() })).toMatchObject(stale)
        const run = 'mutation ($id: ID!) { placeRunHold(input: { id: $id, amount: "0", requestId: "r", ttlSeconds: 60 }) { id } }'
        expect(await failure(caller, run, { id: newHold() })).toMatchObject(stale)
        const now = await current(caller)
        await data(now, PLACE_HOLD, { id: newHold() })
        await data(now, DISPATCH, { id: placed })
      })

      it('a change that is no rule has no effect on holds', async () => {
        const { key, apiKey } = await createKey(operator, { name: 'k' })
        const caller = await principal(key)
        await change('name: "other"')(operator, apiKey.id)
        await organization('name: "Other", lowBalanceThreshold: "1"')(operator)
        await data(caller, PLACE_HOLD, { id: newHold() })
      })

      it('a key that was revoked or expired says so', async () => {
        const { key } = await createKey(operator, { name: 'k', expiresAt: '2026-11-21T09:00:00Z' })
        const caller = await principal(key)
        expect(await current(caller)).toMatchObject({ isEnded: false })
        clock.advance(3_600_000)
        expect(await current(caller)).toMatchObject({ isEnded: true })
      })
    })

    describe('spend limits of keys', () => {
      const FIELDS = 'id spendLimit { amount period spent held resetsAt }'
      const limited = async (spendLimit: unknown, caller: Caller = operator) => {
        const { key, apiKey } = await createKey(caller, { name: 'limited', spendLimit })
        return { id: apiKey.id, caller: await principal(key) }
      }
      const update = async (id: string, spendLimit: unknown, caller: Caller = operator) =>
        data(caller, `mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { apiKey { ${FIELDS} } } }`, {
          input: { id, spendLimit },
        })
      const readLimit = async (id: string) =>
        ((await data(operator, `query ($id: ID!) { apiKey(id: $id) { ${FIELDS} } }`, { id })).apiKey as ResultData).spendLimit
      /** 0.15 USD. */
      const MILLION = 1_000_000
      const spend = async (caller: Principal) => {
        const id = newHold()
        await placeHold(caller, id, MILLION)
        await settle(caller, id, MILLION)
      }
      const placing = async (caller: Principal) =>
        execute(
          await current(caller),
          `mutation ($id: ID!) { placeHold(input: { id: $id, operation: EMBEDDING, modelId: "m", requestId: "r",
            rateCard: { version: "v", inputTokens: "0.15" }, ceiling: { inputTokens: ${MILLION} }, ttlSeconds: 60 }) { id } }`,
          { id: newHold() },
        )

      it('apply to the last nano-USD of the period under concurrent calls, and the error says why', async () => {
        const { id, caller } = await limited({ amount: '0.749999999', period: 'DAY' })
        const results = await Promise.all(Array.from({ length: 40 }, () => placing(caller)))
        const refusals = results.flatMap(({ errors }) => errors ?? [])
        expect(refusals).toHaveLength(36)
        expect(refusals[0]!.extensions.code).toBe('INSUFFICIENT_QUOTA')
        expect(refusals[0]!.message).toBe(
          "The most that this call may cost does not fit the key's spend limit of 0.749999999 USD a day: 0 are spent and 0.6 held by calls in progress, until 2026-11-22T00:00:00.000Z.",
        )
        expect(await readLimit(id)).toEqual({
          amount: '0.749999999',
          period: 'DAY',
          spent: '0',
          held: '0.6',
          resetsAt: '2026-11-22T00:00:00.000Z',
        })
      })

      it('count what the key was charged, until the period ends', async () => {
        const { id, caller } = await limited({ amount: '0.3', period: 'DAY' })
        const hold = newHold()
        await placeHold(caller, hold, 2 * MILLION)
        expect((await placing(caller)).errors).toHaveLength(1)
        await settle(caller, hold, MILLION)
        expect(await readLimit(id)).toMatchObject({ spent: '0.15', held: '0' })
        await spend(caller)
        expect((await placing(caller)).errors).toHaveLength(1)
        expect((await placing(operator)).errors).toBeUndefined()
        clock.advance(16 * 3_600_000)
        expect(await readLimit(id)).toMatchObject({ spent: '0', resetsAt: '2026-11-23T00:00:00.000Z' })
        await spend(caller)
      })

      it('count what the key spent before it was limited, and nothing once the limit is lifted', async () => {
        const { id, caller } = await limited(null)
        expect(await readLimit(id)).toBeNull()
        await spend(caller)
        await update(id, { amount: '0.2', period: 'MONTH' })
        expect(await readLimit(id)).toMatchObject({ spent: '0.15', resetsAt: '2026-12-01T00:00:00.000Z' })
        expect((await placing(caller)).errors).toHaveLength(1)
        await update(id, { amount: '0.3', period: 'TOTAL' })
        expect(await readLimit(id)).toMatchObject({ period: 'TOTAL', spent: '0.15', resetsAt: null })
        await spend(caller)
        expect((await placing(caller)).errors).toHaveLength(1)
        await update(id, null)
        await spend(caller)
      })

      it('survive a rotation and a revocation, and end when the key was revoked long ago and nothing is in flight', async () => {
        const { id, caller } = await limited({ amount: '0.3', period: 'TOTAL' })
        const hold = newHold()
        await placeHold(caller, hold, MILLION)
        const rotated = (await data(operator, 'mutation ($id: ID!) { rotateApiKey(id: $id) { key } }', { id })).rotateApiKey as {
          key: string
        }
        expect(await readLimit(id)).toMatchObject({ amount: '0.3', held: '0.15' })
        expect(await principal(rotated.key)).toMatchObject({ apiKeyId: id })
        const counted = async () => Object.keys((await openCollections(store).wallets.findOne({ _id: operator.organizationId }))!.spending)
        const revoke = (key: string) => data(operator, 'mutation ($id: ID!) { revokeApiKey(id: $id) { apiKey { id } } }', { id: key })
        await revoke(id)
        expect(await counted()).toEqual([id])
        const accepted = newHold()
        await placeHold(caller, accepted, MILLION)
        expect((await placing(caller)).errors).toHaveLength(1)
        for (const open of [hold, accepted]) await settle(caller, open, MILLION)
        const other = await limited({ amount: '1', period: 'DAY' })
        await revoke(other.id)
        expect((await counted()).sort()).toEqual([operator.apiKeyId, id, other.id].sort())
        // The hold is for a document that the key had submitted.
        expect((await placing(caller)).errors?.[0]?.extensions.code).toBe('INSUFFICIENT_QUOTA')
        clock.advance(8 * 86_400_000)
        const free = await limited(null)
        await spend(free.caller)
        await revoke(free.id)
        expect(await counted()).toEqual([operator.apiKeyId])
      })

      it('a key cannot create a key with a wider limit', async () => {
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
        expect(await readLimit(own.apiKey.id)).toMatchObject({ amount: '1', period: 'DAY' })
        await update(own.apiKey.id, { amount: '0.5', period: 'DAY' }, admin)
        const free = await createKey(operator, { name: 'free' })
        for (const [id, field] of [
          [free.apiKey.id, 'rotateApiKey(id: $id) { key }'],
          [apiKey.id, 'updateApiKey(input: { id: $id, spendLimit: null }) { apiKey { id } }'],
        ])
          expect(await failure(admin, `mutation ($id: ID!) { ${field} }`, { id })).toMatchObject({ code: 'PERMISSION_DENIED' })
      })

      describe('with descendant keys', () => {
        const DAY = { amount: '0.75', period: 'DAY' }
        /** Creates a parent of 0.75 USD per day, two children and a grandchild. */
        const family = async (spendLimit: unknown = DAY) => {
          const admin = async (caller: Caller, name: string) => {
            const { key, apiKey } = await createKey(caller, { name, scopes: ['ADMIN'], ...(caller === operator && { spendLimit }) })
            return { id: apiKey.id, caller: await principal(key) }
          }
          const parent = await admin(operator, 'parent')
          const child = await admin(parent.caller, 'child')
          return { parent, child, sibling: await admin(parent.caller, 'sibling'), grandchild: await admin(child.caller, 'grandchild') }
        }

        it('apply to the last nano-USD under concurrent calls', async () => {
          const { parent, child, sibling, grandchild } = await family()
          const all = [parent, child, sibling, grandchild]
          const results = await Promise.all(Array.from({ length: 40 }, (_, i) => placing(all[i % 4]!.caller)))
          expect(results.flatMap(({ errors }) => errors ?? [])).toHaveLength(35)
          expect(await readLimit(parent.id)).toMatchObject({ spent: '0', held: '0.75' })
        })

        it('count each call however it ends, and errors reveal no figures of an ancestor', async () => {
          const { parent, child, sibling, grandchild } = await family()
          await spend(sibling.caller)
          const [settled, voided] = [newHold(), newHold()]
          await placeHold(grandchild.caller, settled, MILLION)
          await placeHold(child.caller, voided, MILLION)
          const run = newHold()
          await data(
            await current(sibling.caller),
            'mutation ($id: ID!) { placeRunHold(input: { id: $id, amount: "0.3", requestId: "r", ttlSeconds: 600 }) { id } }',
            { id: run },
          )
          expect(await readLimit(parent.id)).toMatchObject({ spent: '0.15', held: '0.6' })
          const refusal = (await placing(grandchild.caller)).errors?.[0]
          expect(refusal?.extensions.code).toBe('INSUFFICIENT_QUOTA')
          expect(refusal?.message).toBe(
            'The most that this call may cost does not fit the spend limit of a key from which this one descends, until 2026-11-22T00:00:00.000Z.',
          )
          await settle(grandchild.caller, settled, MILLION / 2)
          await data(child.caller, 'mutation ($id: ID!) { voidHold(id: $id) { state } }', { id: voided })
          await data(sibling.caller, 'mutation ($id: ID!) { voidHold(id: $id) { state } }', { id: run })
          expect(await readLimit(child.id)).toMatchObject({ spent: '0.075' })
          expect(await readLimit(parent.id)).toMatchObject({ spent: '0.225' })
          expect(await readLimit(sibling.id)).toMatchObject({ spent: '0.15', held: '0' })
        })

        it('count what descendants spent before the limit, and no descendant lifts the limit or takes over keys outside it', async () => {
          const { parent, child, grandchild } = await family(null)
          await spend(grandchild.caller)
          await update(parent.id, DAY)
          expect(await readLimit(parent.id)).toMatchObject({ spent: '0.15' })
          const denied = { code: 'PERMISSION_DENIED' }
          const other = await limited(DAY)
          for (const { caller } of [parent, child])
            for (const [id, field] of [
              [parent.id, 'updateApiKey(input: { id: $id, spendLimit: null }) { apiKey { id } }'],
              [parent.id, 'updateApiKey(input: { id: $id, spendLimit: { amount: "1", period: DAY } }) { apiKey { id } }'],
              [other.id, 'rotateApiKey(id: $id) { key }'],
            ])
              expect(await failure(await current(caller), `mutation ($id: ID!) { ${field} }`, { id })).toMatchObject(denied)
          for (let calls = 1; calls <= 4; calls++) await spend((await current(child.caller)) as Principal)
          expect((await placing(grandchild.caller)).errors).toHaveLength(1)
        })
      })

      it.each(['-1', '9000000.000000001'])('refuse a limit of %s USD', async (amount) => {
        const input = { name: 'k', spendLimit: { amount, period: 'DAY' } }
        expect(
          await failure(operator, 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }', { input }),
        ).toMatchObject({ code: 'UNSUPPORTED_VALUE', param: 'spendLimit.amount' })
      })
    })

    describe('visibility', () => {
      it('shows the caller its own organization, wallet, entries and usage immediately after a call is settled', async () => {
        const { admin } = await tenant()
        const id = newHold()
        expect((await placeHold(admin, id)).placeHold).toEqual({ id, state: 'DISPATCHED', amount: '0.00015' })
        const dispatched = await data(
          admin,
          'mutation ($id: ID!) { dispatchHold(input: { id: $id, quantities: { inputTokens: 5 } }) { state } checkpointHold(input: { id: $id, quantities: { inputTokens: 6 }, ttlSeconds: 60 }) { state } }',
          { id },
        )
        expect(dispatched).toEqual({ dispatchHold: { state: 'DISPATCHED' }, checkpointHold: { state: 'DISPATCHED' } })
        expect((await settle(admin, id)).settleHold).toEqual({ state: 'SETTLED', charged: '0.000015', absorbed: '0' })
        const voided = newHold()
        await placeHold(admin, voided)
        expect(await data(admin, 'mutation ($id: ID!) { voidHold(id: $id) { state charged } }', { id: voided })).toEqual({
          voidHold: { state: 'VOIDED', charged: '0' },
        })
        const result = await data(
          admin,
          `{ usage { edges { node { id model { id } apiKey { name } operation quantities { unit quantity rate } amount rateCardVersion source requestId at } } }
             organization { name wallet { balance held available entries(first: 2) { pageInfo { hasNextPage } edges { node { kind amount held balance reference sequence } } } } } }`,
        )
        expect(result.usage).toMatchObject({
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
        expect(result.organization).toEqual({
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

      it('shows the usage of the caller page by page, by model, key and time', async () => {
        const { admin } = await tenant()
        const other = { ...admin, apiKeyId: (await createKey(admin, { name: 'other' })).apiKey.id }
        const times: string[] = []
        for (const caller of [admin, other, admin]) {
          times.push(clock.now().toISOString())
          const id = newHold()
          await placeHold(caller, id)
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
        const ids = (await data(
          admin,
          '{ usage { edges { node { id } } } organization { wallet { entries { edges { node { id } } } } } }',
        )) as {
          usage: { edges: { node: { id: string } }[] }
          organization: { wallet: { entries: { edges: { node: { id: string } }[] } } }
        }
        const [latest] = ids.usage.edges
        const after = Buffer.from(latest!.node.id).toString('base64url')
        expect((await page({ first: 1, after })).at).toEqual([times[1]])
        expect(await failure((await tenant()).admin, source, { after })).toMatchObject({ code: 'INVALID_REQUEST', param: 'after' })
        const entries = ids.organization.wallet.entries.edges.map(({ node }) => node.id)
        const rest = await data(
          admin,
          'query ($after: String) { organization { wallet { entries(after: $after) { edges { node { id } } } } } }',
          {
            after: Buffer.from(entries[1]!).toString('base64url'),
          },
        )
        expect(rest).toMatchObject({ organization: { wallet: { entries: { edges: entries.slice(2).map((id) => ({ node: { id } })) } } } })
        expect(await failure(admin, source, { first: 0 })).toMatchObject({ code: 'INTEGER_BELOW_MIN_VALUE', param: 'first' })
      })

      it('shows the keys of the caller, newest first, without secrets', async () => {
        const createdKeys = [await createKey(operator, { name: 'a' }), await createKey(operator, { name: 'b' })]
        const source =
          'query ($after: String) { organization { apiKeys(first: 2, after: $after) { pageInfo { endCursor hasPreviousPage } edges { node { id name last4 } } } } }'
        type Keys = {
          apiKeys: { pageInfo: { endCursor: string; hasPreviousPage: boolean }; edges: { node: { name: string; last4: string } }[] }
        }
        const first = (await data(operator, source)).organization as Keys
        expect(first.apiKeys.edges.map((edge) => edge.node.name)).toEqual(['b', 'a'])
        expect(first.apiKeys.edges[0]!.node.last4).toBe(createdKeys[1]!.key.slice(-4))
        const second = (await data(operator, source, { after: first.apiKeys.pageInfo.endCursor })).organization as Keys
        expect(second.apiKeys).toMatchObject({ pageInfo: { hasPreviousPage: true }, edges: [{ node: { name: 'Operator' } }] })
      })

      it('resolves references to the data of the caller only, and all of them for an operator', async () => {
        const [owner, other] = [await tenant(), await tenant()]
        const id = newHold()
        await placeHold(owner.admin, id)
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

    it('lets an admin change the organization, and only the operator its plan', async () => {
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

    it('lets the operator add and correct credit, once per reference', async () => {
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

    it('checks the scope of every field', async () => {
      const { admin } = await tenant()
      const limited = createPrincipal(
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
        { source: 'mutation { endHoldsOf(holder: "a") }', scope: 'service' },
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
          // An unknown API key is a result for the gateway, not a refusal of the gateway.
          if (may.includes(scope)) expect(['PERMISSION_DENIED', caller === GATEWAY ? '' : 'INVALID_API_KEY'], source).not.toContain(code)
          else expect({ source, code }).toEqual({ source, code: scope === 'service' ? 'PERMISSION_DENIED' : otherwise })
        }
    })

    it('reports that it is ready', async () => expect(await billing.problems()).toEqual([]))
  })
