import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../test/support/document-stores.ts'
import { acceptedSecrets, deriveKeys, fingerprintsOf, listKeys, type Secrets } from '../common/identity/accepted-secrets.ts'
import { SealedTexts } from '../common/identity/sealed-text.ts'
import type { DocumentCollection, DocumentStore } from '../common/ports/document-store.ts'
import { silentLog } from '../common/process/log.ts'
import { SecretRotation } from '../common/rotation/secret-rotation.ts'
import { apiKeyFrom } from './accounts/domain/api-key.ts'
import { bootstrap } from './accounts/use-cases/bootstrap.ts'
import { createApiKey } from './accounts/use-cases/create-api-key.ts'
import { createOrganization } from './accounts/use-cases/create-organization.ts'
import { principalOfApiKey } from './accounts/use-cases/find-principal.ts'
import { finishSecretRotation, listUnmovedKeys } from './accounts/use-cases/finish-secret-rotation.ts'
import { revokeApiKey } from './accounts/use-cases/revoke-api-key.ts'
import { findByToken, inviteMember } from './people/use-cases/invitations.ts'
import { secretDependents } from './secret-dependents.ts'
import { ManualClock, makePrincipal, openBilling } from './test-support/world.ts'
import type { BillingDeps } from './use-cases/deps.ts'
import type { ApiKey } from './use-cases/tables.ts'
import { secretsOf } from './webhooks/use-cases/endpoint-secrets.ts'
import { createEndpoint, rotateSecret } from './webhooks/use-cases/endpoints.ts'

const OPERATOR = makePrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const NONE = { next: null, previous: null }
const secret = (name: string) => createHash('sha256').update(name).digest()
const [a, b, c] = [secret('a'), secret('b'), secret('c')] as const
const print = (of: Uint8Array) => fingerprintsOf(deriveKeys(acceptedSecrets(of, NONE), 'fingerprint')).current

type Process = Omit<BillingDeps, 'rotation'> & { readonly rotation: SecretRotation; readonly step: () => Promise<void> }

for (const { name, open } of STORES)
  describe(`a rotation of the secret in billing on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    /** The secret in the mark of the store. */
    let mark: string
    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      mark = print(a)
    })
    afterEach(() => store[Symbol.asyncDispose]())

    /** A process that starts now. `wrap`: what happens to its writes. */
    function start(
      secrets: Secrets,
      wrap: (collections: BillingDeps['collections']) => BillingDeps['collections'] = (all) => all,
    ): Process {
      const peppers = deriveKeys(secrets, 'api key pepper')
      const sealed = new SealedTexts(...listKeys(deriveKeys(secrets, 'webhook secrets')))
      const move = async () => {
        mark = peppers.current.secretFingerprint
      }
      const secretMark = { store: 'billing.sqlite', fingerprint: mark, move }
      const billing = openBilling(store, clock, undefined, { peppers, sealed, secretMark })
      const deps = { ...billing, collections: wrap(billing.collections) }
      const dependents = secretDependents(deps)
      const rotation = new SecretRotation({ dependents, fingerprints: fingerprintsOf(peppers), mark: secretMark, clock, log: silentLog })
      return { ...deps, rotation, step: () => rotation.step(AbortSignal.timeout(60_000)) }
    }
    const initial = () => start(acceptedSecrets(a, NONE))
    const preparing = () => start(acceptedSecrets(a, { next: b, previous: null }))
    const moving = () => start(acceptedSecrets(b, { next: null, previous: a }))
    const final = () => start(acceptedSecrets(b, NONE))

    /** An organization with its admin key, as the admin. */
    async function tenant(deps: BillingDeps) {
      const { organization, apiKey, key } = await createOrganization(deps, OPERATOR, { name: 'A tenant' })
      return { principal: makePrincipal(organization._id, ['admin', 'inference'], apiKey._id), key, apiKey }
    }
    const works = (deps: BillingDeps, key: string) =>
      principalOfApiKey(deps, key).then(
        () => true,
        () => false,
      )
    const stored = (deps: BillingDeps, { _id }: ApiKey) => deps.collections.apiKeys.findOne({ _id })
    /** As version 0.2.0 has written them. */
    async function unlabel(deps: BillingDeps) {
      const { apiKeys, invitations, webhookEndpoints } = deps.collections
      for (const collection of [apiKeys, invitations, webhookEndpoints] as unknown as DocumentCollection<ApiKey>[])
        for (const { _id } of await collection.find({}, { limit: 100 }))
          await collection.findOneAndUpdate({ _id }, { $unset: { secretFingerprint: '' } })
    }

    it('a key works in every process of the same time, moves as it is used, and then without the old secret', async () => {
      const used = await tenant(initial())
      const unused = await tenant(initial())
      await unlabel(initial())
      const [p1, p2] = [preparing(), moving()]
      await p2.step()
      expect((await p2.rotation.progress()).parts[0]).toEqual({ kind: 'api_keys', current: 0, left: 2 })
      expect(await works(p1, used.key)).toBe(true)
      expect((await stored(p1, used.apiKey))!.secretFingerprint).toBe(print(a))
      for (const each of [p2, p1, p2]) expect(await works(each, used.key)).toBe(true)
      expect((await stored(p1, used.apiKey))!.secretFingerprint).toBe(print(b))
      await p2.step()
      expect(await p2.rotation.progress()).toMatchObject({ state: 'moving', parts: [{ current: 1, left: 1 }, {}, {}] })
      expect(await listUnmovedKeys(p2, OPERATOR)).toEqual([expect.objectContaining({ _id: unused.apiKey._id, name: 'First admin key' })])
      expect(mark).toBe(print(a))
      await expect(final().rotation.requireAccepted()).rejects.toThrow(/keep it as KIS_SECRET_PREVIOUS/)
      expect(await works(p2, unused.key)).toBe(true)
      await p2.step()
      expect([await p2.rotation.progress(), mark]).toMatchObject([{ state: 'moved' }, print(b)])
      await final().rotation.requireAccepted()
      for (const { key } of [used, unused]) expect(await works(final(), key)).toBe(true)
      expect(await works(initial(), used.key)).toBe(false)
    })

    it('a key that another process moves between two looks is found', async () => {
      const { key, apiKey } = await tenant(initial())
      const mover = moving()
      let looks = 0
      const p2 = start(acceptedSecrets(b, { next: null, previous: a }), (collections) => ({
        ...collections,
        apiKeys: new Proxy(collections.apiKeys, {
          get(target, property) {
            if (property !== 'findOne') return (target as never)[property]
            return async (filter: { digest?: string }) => {
              const found = await target.findOne(filter)
              if (filter.digest !== undefined && ++looks === 1) expect(await works(mover, key)).toBe(true)
              return found
            }
          },
        }),
      }))
      expect(await works(p2, key)).toBe(true)
      expect(looks).toBe(3)
      expect((await stored(p2, apiKey))!.secretFingerprint).toBe(print(b))
    })

    it('a key that cannot be written still works, with the old digest; and text that is no key costs no read', async () => {
      const { key, apiKey } = await tenant(initial())
      let reads = 0
      const p2 = start(acceptedSecrets(b, { next: null, previous: a }), (collections) => ({
        ...collections,
        apiKeys: new Proxy(collections.apiKeys, {
          get(target, property) {
            if (property === 'findOneAndUpdate') return () => Promise.reject(new Error('the disk is full'))
            if (property === 'findOne') reads++
            const value = (target as never)[property] as unknown
            return typeof value === 'function' ? value.bind(target) : value
          },
        }),
      }))
      expect(await works(p2, key)).toBe(true)
      expect((await stored(initial(), apiKey))!.secretFingerprint).toBe(print(a))
      const seen = reads
      expect([await works(p2, 'no key'), reads]).toEqual([false, seen])
      expect(await works(initial(), key)).toBe(true)
    })

    it('keys that were revoked or have expired are not waited for', async () => {
      const { principal, apiKey } = await tenant(initial())
      const make = (fields: object) => createApiKey(initial(), principal, { name: 'a key', scopes: ['inference'], ...fields } as never)
      const revoked = await make({})
      await make({ expiresAt: new Date(clock.now().getTime() + 60_000) })
      await revokeApiKey(initial(), principal, revoked.apiKey._id)
      clock.advance(120_000)
      const p2 = moving()
      await p2.step()
      expect((await p2.rotation.progress()).parts[0]).toEqual({ kind: 'api_keys', current: 2, left: 1 })
      expect((await listUnmovedKeys(p2, OPERATOR)).map(({ _id }) => _id)).toEqual([apiKey._id])
    })

    it('the operator key is shown until its first use, whichever secret it was made with; one that was brought moves at once', async () => {
      const settings = { apiKey: null, creditNanoUsd: 0n }
      const shown = (await bootstrap(initial(), settings))!
      for (const each of [preparing(), moving()]) expect(await bootstrap(each, settings)).toBe(shown)
      expect(await works(moving(), shown)).toBe(true)
      expect(await bootstrap(moving(), settings)).toBeNull()
      expect(await works(final(), shown)).toBe(true)
    })

    it('the operator key that was brought moves at the start', async () => {
      const settings = { apiKey: apiKeyFrom(secret('the operator')), creditNanoUsd: 0n }
      for (const each of [initial(), preparing(), moving()]) expect(await bootstrap(each, settings)).toBeNull()
      expect(await works(final(), settings.apiKey)).toBe(true)
    })

    it('an invitation is good with any secret that is accepted, and waited for until it is over', async () => {
      const { principal } = await tenant(initial())
      const { token, invitation } = await inviteMember(initial(), principal, { email: 'salim@example.org', role: 'viewer' })
      await unlabel(initial())
      const p2 = moving()
      await p2.step()
      for (const each of [initial(), preparing(), p2]) expect((await findByToken(each, token))?._id).toBe(invitation._id)
      expect((await p2.rotation.progress()).parts[1]).toEqual({ kind: 'invitations', current: 0, left: 1 })
      clock.advance(8 * 86_400_000)
      await p2.step()
      expect((await p2.rotation.progress()).parts[1]).toEqual({ kind: 'invitations', current: 1, left: 0 })
    })

    it('the secrets of webhooks stay through two rotations of the service, and one of their own', async () => {
      const { principal } = await tenant(initial())
      const input = { url: 'https://receiver.test/', eventTypes: ['document.updated'] }
      const egress = { mayAsk: () => true, mayReach: async () => true, isNamed: () => true } as never
      const { webhookEndpoint, secret: first } = await createEndpoint({ ...initial(), egress }, principal, input)
      const { secret: second } = await rotateSecret(initial(), principal, webhookEndpoint._id)
      await unlabel(initial())
      const signing = async (deps: BillingDeps) => {
        const endpoint = (await deps.collections.webhookEndpoints.findOne({ _id: webhookEndpoint._id }))!
        return secretsOf(deps, endpoint, clock.now())
      }
      for (const each of [initial(), preparing(), moving()]) expect(await signing(each)).toEqual([second, first])
      await moving().step()
      for (const each of [preparing(), moving(), final()]) expect(await signing(each)).toEqual([second, first])
      mark = print(b)
      const toC = () => start(acceptedSecrets(c, { next: null, previous: b }))
      const p1 = start(acceptedSecrets(b, { next: c, previous: null }))
      expect(await signing(toC())).toEqual([second, first])
      const { secret: third } = await rotateSecret(toC(), principal, webhookEndpoint._id)
      for (const each of [p1, toC()]) expect(await signing(each)).toEqual([third, second])
      await toC().step()
      const last = start(acceptedSecrets(c, NONE))
      expect(await signing(last)).toEqual([third, second])
      clock.advance(25 * 3_600_000)
      expect(await signing(last)).toEqual([third])
    })

    it('a job that dies before any of its writes leaves what works, and the next one ends it', async () => {
      const { principal, key } = await tenant(initial())
      const egress = { mayAsk: () => true, mayReach: async () => true, isNamed: () => true } as never
      const secrets = new Map<string, string>()
      for (let i = 0; i < 3; i++) {
        const made = await createEndpoint({ ...initial(), egress }, principal, {
          url: `https://r${i}.test/`,
          eventTypes: ['document.updated'],
        })
        secrets.set(made.webhookEndpoint._id, made.secret)
      }
      await unlabel(initial())
      for (let dies = 1; dies <= 5; dies++) {
        let writes = 0
        const dying = <T extends object>(collection: T): T =>
          new Proxy(collection, {
            get(target, property) {
              const value = (target as never)[property] as unknown
              if (property === 'findOneAndUpdate' && ++writes === dies) return () => Promise.reject(new Error('killed'))
              return typeof value === 'function' ? value.bind(target) : value
            },
          })
        const p2 = start(acceptedSecrets(b, { next: null, previous: a }), (all) => ({
          ...all,
          apiKeys: dying(all.apiKeys),
          webhookEndpoints: dying(all.webhookEndpoints),
        }))
        await p2.step().catch((error) => expect(error.message).toBe('killed'))
        for (const each of [preparing(), moving()])
          for (const endpoint of await each.collections.webhookEndpoints.find({}, { limit: 10 }))
            expect(secretsOf(each, endpoint, clock.now())).toEqual([secrets.get(endpoint._id)])
      }
      expect(await works(moving(), key)).toBe(true)
      const last = moving()
      await last.step()
      expect([await last.rotation.progress(), mark]).toMatchObject([{ state: 'moved' }, print(b)])
    })

    it('finishing revokes the keys and invitations that are left, and none that was used', async () => {
      const used = await tenant(initial())
      const unused = await tenant(initial())
      const child = await createApiKey(initial(), unused.principal, { name: 'child', scopes: ['inference'] } as never)
      const { token } = await inviteMember(initial(), unused.principal, { email: 'salim@example.org', role: 'viewer' })
      const p2 = moving()
      await expect(finishSecretRotation(p2, OPERATOR)).rejects.toMatchObject({ code: 'service_unavailable' })
      await expect(finishSecretRotation(initial(), OPERATOR)).rejects.toMatchObject({ code: 'invalid_request' })
      await expect(finishSecretRotation(p2, used.principal)).rejects.toMatchObject({ code: 'permission_denied' })
      await p2.step()
      const own = { ...OPERATOR, apiKeyId: child.apiKey._id }
      await expect(finishSecretRotation(p2, own)).rejects.toMatchObject({ code: 'in_use' })
      for (const { apiKey } of [used, unused]) expect((await stored(p2, apiKey))!.revokedAt).toBeNull()
      for (const key of [used.key, child.key]) expect(await works(p2, key)).toBe(true)
      expect(await finishSecretRotation(p2, OPERATOR)).toEqual({ revokedKeys: 1, revokedInvitations: 1, hasMore: false })
      await p2.step()
      expect([await p2.rotation.progress(), mark]).toMatchObject([{ state: 'moved' }, print(b)])
      expect(await Promise.all([used.key, child.key, unused.key].map((key) => works(p2, key)))).toEqual([true, true, false])
      expect((await stored(p2, unused.apiKey))!.revokedAt).toEqual(clock.now())
      expect((await findByToken(p2, token))?.revokedAt).toEqual(clock.now())
    })
  })
