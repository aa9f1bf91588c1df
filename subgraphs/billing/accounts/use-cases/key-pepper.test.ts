import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import { deriveKey, fingerprintSecret, sealedBy } from '../../../common/identity/secrets.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { findByToken, inviteMember } from '../../members/use-cases/invitations.ts'
import { createPrincipal, ManualClock, openBilling } from '../../test-support/world.ts'
import { endpointSealContext, resealEndpoints, secretsOf } from '../../webhooks/use-cases/endpoint-secrets.ts'
import { createEndpoint, rotateSecret } from '../../webhooks/use-cases/endpoints.ts'
import { decideFirst } from './bootstrap.ts'
import { createOrganization } from './create-organization.ts'
import { principalOfApiKey } from './find-principal.ts'
import { endRotation, openPepper, startRotation } from './key-pepper.ts'

const OPERATOR = createPrincipal('org_00000000000000000000000000000001', ['admin', 'operator'], 'key_operator')
const [a, b, c] = [randomBytes(32), randomBytes(32), randomBytes(32)] as const
const SETTINGS = { creditNanoUsd: 0n }
const ANOTHER = /created with another secret: .*KIS_SECRET/

for (const { name, open } of STORES)
  describe(`Key pepper on ${name}`, () => {
    let store: DocumentStore
    beforeEach(async () => {
      store = await open()
    })
    afterEach(() => store[Symbol.asyncDispose]())

    /** Starts a process with this secret. */
    async function start(secret: Uint8Array, secretFingerprint: string | null = null) {
      const deps = openBilling(store, new ManualClock())
      const opening = { ...deps, secret, secretFingerprint }
      const pepper = await openPepper(opening, await decideFirst(opening, SETTINGS))
      const egress = { allows: () => true, mayReach: async () => true, isNamed: () => true } as never
      return { ...deps, egress, pepper: () => pepper, sealed: sealedBy(secret, 'webhook secrets') }
    }
    /** Creates what version 0.2 leaves of a first start with the secret `a`: keys, and no pepper. */
    async function startedEarlier() {
      const deps = { ...openBilling(store, new ManualClock()), pepper: () => deriveKey(a, 'api key pepper') }
      await decideFirst({ ...deps, secret: a, secretFingerprint: null }, SETTINGS)
      await deps.collections.bootstrap.findOneAndUpdate({ _id: 'operator' }, { $unset: { sealedPepper: '', secretFingerprint: '' } })
      return { deps, ...(await createOrganization(deps, OPERATOR, { name: 'A tenant' })) }
    }
    const rotate = async (from: Uint8Array, to: Uint8Array) => {
      const { collections } = openBilling(store, new ManualClock())
      if (!(await startRotation(collections, from, to))) return
      await resealEndpoints(collections, sealedBy(from, 'webhook secrets'), sealedBy(to, 'webhook secrets'))
      await endRotation({ collections, secret: from, secretFingerprint: null }, to)
    }

    it('is created once by one of the processes that start together, and is not derived from the secret', async () => {
      const peppers = await Promise.all([start(a), start(a), start(a)])
      for (const { pepper } of [...peppers, await start(a)]) expect(pepper()).toEqual(peppers[0]!.pepper())
      expect(peppers[0]!.pepper()).not.toEqual(deriveKey(a, 'api key pepper'))
      await expect(start(b)).rejects.toThrow(ANOTHER)
    })

    it('is, in an installation of version 0.2, the pepper that its keys were created with', async () => {
      const { key, organization } = await startedEarlier()
      await expect(start(b, fingerprintSecret(a))).rejects.toThrow(ANOTHER)
      const upgraded = await Promise.all([start(a, fingerprintSecret(a)), start(a, fingerprintSecret(a))])
      for (const deps of [...upgraded, await start(a)])
        expect(await principalOfApiKey(deps, key)).toMatchObject({ organizationId: organization._id })
      await rotate(a, b)
      // The mark of the store stays.
      expect(await principalOfApiKey(await start(b, fingerprintSecret(a)), key)).toMatchObject({ organizationId: organization._id })
    })

    it('is not created while version 0.2 rotates the secret', async () => {
      const { deps, apiKey } = await startedEarlier()
      const label = (secretFingerprint: string) =>
        deps.collections.apiKeys.findOneAndUpdate({ _id: apiKey._id }, { $set: { secretFingerprint } })
      await label(fingerprintSecret(b))
      await expect(start(a, fingerprintSecret(a))).rejects.toThrow(/version 0.2 .* has not ended/)
      await label(fingerprintSecret(a))
      await start(a, fingerprintSecret(a))
    })

    it('keeps keys and invitations valid in a rotation', async () => {
      const deps = await start(a)
      const { key, apiKey, organization } = await createOrganization(deps, OPERATOR, { name: 'A tenant' })
      const principal = createPrincipal(organization._id, ['admin', 'inference'], apiKey._id)
      const { token, invitation } = await inviteMember(deps, principal, { email: 'salim@example.org', role: 'viewer' })
      await rotate(a, b)
      expect(await principalOfApiKey(await start(b), key)).toMatchObject({ apiKeyId: apiKey._id })
      expect(await findByToken(await start(b), token)).toMatchObject({ _id: invitation._id })
    })

    it('survives a rotation, which blocks every start until it ends and refuses the old secret afterwards', async () => {
      const { collections, pepper } = await start(a)
      expect(await startRotation(collections, a, b)).toBe(true)
      for (const secret of [a, b, c]) await expect(start(secret)).rejects.toThrow(/has not ended. Run `kis secret rotate` again/)
      await expect(startRotation(collections, c, b)).rejects.toThrow(ANOTHER)
      await expect(startRotation(collections, a, c)).rejects.toThrow(/to another new secret/)
      await rotate(a, b)
      await rotate(a, b)
      await expect(start(a)).rejects.toThrow(ANOTHER)
      expect((await start(b)).pepper()).toEqual(pepper())
      await rotate(b, c)
      expect((await start(c)).pepper()).toEqual(pepper())
    })

    it('refuses to rotate a secret on which no service of this version has started', async () => {
      const { deps } = await startedEarlier()
      await expect(startRotation(deps.collections, a, b)).rejects.toThrow(/Start the service of this version once/)
    })

    it('preserves the secrets of webhooks through rotations of the service secret and of their own', async () => {
      const { key: _, apiKey, organization } = await createOrganization(await start(a), OPERATOR, { name: 'A tenant' })
      const principal = createPrincipal(organization._id, ['admin'], apiKey._id)
      const input = { url: 'https://receiver.test/', eventTypes: ['document.updated'] }
      const { webhookEndpoint, secret: derived } = await createEndpoint(await start(a), principal, input)
      const { _id } = webhookEndpoint
      const signing = async (secret: Uint8Array) => {
        const deps = await start(secret)
        return secretsOf(deps, (await deps.collections.webhookEndpoints.findOne({ _id }))!, deps.clock.now())
      }
      // The endpoint is as version 0.2 has left it after a rotation.
      const { collections, sealed } = await start(a)
      const sealedSecret = sealed.seal('whsec_earlier', endpointSealContext(_id, webhookEndpoint.nonce))
      await collections.webhookEndpoints.findOneAndUpdate({ _id }, { $set: { sealedSecret } })
      expect(await signing(a)).toEqual(['whsec_earlier'])
      await rotate(a, b)
      expect(await signing(b)).toEqual(['whsec_earlier'])
      const { secret: second } = await rotateSecret(await start(b), principal, _id)
      await rotate(b, c)
      expect(await signing(c)).toEqual([second, 'whsec_earlier'])
      const { secret: third } = await rotateSecret(await start(c), principal, _id)
      expect(await signing(c)).toEqual([third, second])
      expect(new Set([derived, second, third]).size).toBe(3)
    })
  })
