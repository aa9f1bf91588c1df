import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { storesAndMongo } from '../../../../test/support/document-stores.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { LEASE_MS } from '../../../common/documents/jobs.ts'
import { Egress } from '../../../common/egress/egress.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { FakeReceivers, hand, newEndpoint, openSender, sendAll, type WebhookWorld } from '../../test-support/webhook-world.ts'
import { createPrincipal, ManualClock } from '../../test-support/world.ts'
import { MAX_TRIES } from '../domain/retry.ts'
import { RETENTION_MS } from './accept-events.ts'
import { deleteEndpoint, rotateSecret, updateEndpoint } from './endpoints.ts'
import { pingEndpoint, redeliverSince } from './redeliver.ts'
import { sweepWebhooks } from './sweep-webhooks.ts'

const DAY_MS = 86_400_000

for (const { name, open } of await storesAndMongo('Webhooks'))
  describe(`Webhooks on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let receivers: FakeReceivers
    let world: WebhookWorld
    let organizationId: string
    beforeEach(async () => {
      store = await open()
      clock = new ManualClock()
      receivers = new FakeReceivers()
      world = openSender(store, clock, receivers)
      organizationId = `org_${randomHex(32)}`
    })

    afterEach(() => store[Symbol.asyncDispose]())

    const numbers = (document?: string) =>
      receivers.sent.filter((sent) => !document || sent.document === document).map(({ number }) => number)
    const endpoint = (id: string) => world.deps.collections.webhookEndpoints.findOne({ _id: id })
    const statuses = async (endpointId: string) => {
      const deliveries = await world.deps.collections.webhookDeliveries.find({ endpointId }, { sort: { order: 1 }, limit: 100 })
      return deliveries.map(({ status }) => status).toSorted()
    }

    it('store a page of events once, under repeated and concurrent delivery, and none from outside the position of the feed', async () => {
      await newEndpoint(world, 'https://a.test/', organizationId)
      const other = openSender(store, clock, receivers)
      const results = await Promise.all([
        hand(world, organizationId, null, ['doc_1', 'doc_1']),
        hand(other, organizationId, null, ['doc_1', 'doc_1']),
      ])
      expect(results).toContain(true)
      expect(await hand(world, organizationId, null, ['doc_1', 'doc_1'])).toBe(false)
      expect(await hand(world, organizationId, 7, ['doc_1'])).toBe(false)
      await Promise.all([sendAll(world), sendAll(other)])
      expect(numbers()).toEqual([1, 2])
    })

    it('preserve the order of each document across two processes, and deliver different documents concurrently', async () => {
      await newEndpoint(world, 'https://a.test/', organizationId)
      const other = openSender(store, clock, receivers)
      const documents = Array.from({ length: 40 }, (_, i) => `doc_${i % 5}`)
      receivers.answering = async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return 204
      }
      const sending = [world, other].map(async (each) => {
        while (receivers.sent.length < documents.length) {
          await sendAll(each)
          await new Promise((resolve) => setImmediate(resolve))
        }
      })
      for (let after = 0; after < documents.length; after += 8)
        await hand(world, organizationId, after || null, documents.slice(after, after + 8))
      await Promise.all(sending)
      expect(receivers.sent).toHaveLength(documents.length)
      for (let i = 0; i < 5; i++) expect(numbers(`doc_${i}`)).toEqual(numbers(`doc_${i}`).toSorted((a, b) => a - b))
      expect(new Set(receivers.sent.map(({ id }) => id)).size).toBe(documents.length)
    })

    it('hold back a document behind a failed event, until it is accepted or has no attempts left', async () => {
      const id = await newEndpoint(world, 'https://a.test/', organizationId)
      await hand(world, organizationId, null, ['doc_1', 'doc_1', 'doc_2'])
      receivers.answering = ({ number }) => (number === 1 ? 500 : 200)
      await sendAll(world)
      expect(numbers('doc_1')).toEqual([1])
      expect(numbers('doc_2')).toEqual([3])
      for (let tries = 1; tries < MAX_TRIES; tries++) {
        expect(await statuses(id)).toEqual(['delivered', 'pending', 'pending'])
        clock.advance(DAY_MS)
        // Another delivery succeeds meanwhile, so that the endpoint does not count as failing.
        await world.deps.collections.webhookEndpoints.findOneAndUpdate({ _id: id }, { $set: { failingSince: null } })
        await sendAll(world)
      }
      expect(numbers('doc_1')).toEqual([...Array(MAX_TRIES).fill(1), 2])
      expect(new Set(receivers.sent.filter(({ number }) => number === 1).map((sent) => sent.id)).size).toBe(1)
      expect(await statuses(id)).toEqual(['delivered', 'delivered', 'failed'])
    })

    it('are disabled after five days of failures, and by 410', async () => {
      const id = await newEndpoint(world, 'https://a.test/', organizationId)
      await hand(world, organizationId, null, ['doc_1'])
      receivers.answering = () => null
      await sendAll(world)
      expect(await endpoint(id)).toMatchObject({ isActive: true, failingSince: clock.now() })
      clock.advance(5 * DAY_MS + 1)
      await sendAll(world)
      expect(await endpoint(id)).toMatchObject({ isActive: false, disabledReason: 'failing', disabledAt: clock.now() })
      await hand(world, organizationId, 1, ['doc_1'])
      clock.advance(DAY_MS)
      await sendAll(world)
      expect(numbers()).toEqual([1, 1])
      receivers.answering = () => 410
      await updateEndpoint(world.deps, createPrincipal(organizationId, ['admin']), { id, isActive: true })
      await sendAll(world)
      expect(numbers()).toEqual([1, 1, 1])
      expect(await endpoint(id)).toMatchObject({ isActive: false, disabledReason: 'gone' })
      // The endpoint gets missed events on request.
      receivers.answering = () => 200
      await updateEndpoint(world.deps, createPrincipal(organizationId, ['admin']), { id, isActive: true })
      const again = await redeliverSince(world.deps, createPrincipal(organizationId, ['admin']), { endpointId: id, since: new Date(0) })
      expect(again).toEqual({ count: 2, next: null })
      await sendAll(world)
      expect(numbers()).toEqual([1, 1, 1, 1, 2])
    })

    it('ping an endpoint on request, with at most one event a minute', async () => {
      const id = await newEndpoint(world, 'https://a.test/', organizationId)
      const admin = createPrincipal(organizationId, ['admin'])
      const { webhookEvents, webhookDeliveries } = world.deps.collections
      const storedCounts = async () => [
        await webhookEvents.countDocuments({ organizationId }),
        await webhookDeliveries.countDocuments({ endpointId: id }),
      ]
      for (let i = 0; i < 3; i++) {
        expect(await pingEndpoint(world.deps, admin, id)).toMatchObject({ event: { type: 'ping' }, delivery: { status: 'pending' } })
        await sendAll(world)
        expect(await statuses(id)).toEqual(['delivered'])
      }
      await Promise.all(Array.from({ length: 10 }, () => pingEndpoint(world.deps, admin, id)))
      await sendAll(world)
      expect(receivers.sent.map(({ type }) => type)).toEqual(Array(4).fill('ping'))
      expect(new Set(receivers.sent.map((sent) => sent.id)).size).toBe(1)
      expect(await storedCounts()).toEqual([1, 1])
      clock.advance(60_000)
      await pingEndpoint(world.deps, admin, id)
      expect(await storedCounts()).toEqual([2, 2])
    })

    it('leave no pings of endpoints that are created and deleted', async () => {
      const admin = createPrincipal(organizationId, ['admin'])
      const stays = await newEndpoint(world, 'https://a.test/', organizationId)
      await pingEndpoint(world.deps, admin, stays)
      for (let i = 0; i < 3; i++) {
        const goes = await newEndpoint(world, 'https://b.test/', organizationId)
        await pingEndpoint(world.deps, admin, goes)
        await sendAll(world)
        await deleteEndpoint(world.deps, admin, goes)
      }
      const events = await world.deps.collections.webhookEvents.find({ organizationId }, { sort: { order: 1 }, limit: 10 })
      expect(events.map(({ subject }) => subject)).toEqual([stays])
    })

    it('are all redelivered on request, in the order of each document, whether or not they were sent before', async () => {
      await newEndpoint(world, 'https://a.test/', organizationId)
      const documents = Array.from({ length: 12 }, (_, i) => `doc_${i % 3}`)
      await hand(world, organizationId, null, documents)
      await sendAll(world)
      const again = async (id: string) => {
        receivers.sent.length = 0
        const redelivered = await redeliverSince(world.deps, createPrincipal(organizationId, ['admin']), {
          endpointId: id,
          since: new Date(0),
        })
        expect(redelivered).toEqual({ count: 12, next: null })
        await sendAll(world)
        for (let i = 0; i < 3; i++) expect(numbers(`doc_${i}`)).toEqual([1, 4, 7, 10].map((number) => number + i))
      }
      const late = await newEndpoint(world, 'https://b.test/', organizationId)
      await again(late)
      await again(late)
      const { webhookDeliveries } = world.deps.collections
      const [, second] = await webhookDeliveries.find({ endpointId: late }, { sort: { order: 1 }, limit: 2 })
      await webhookDeliveries.findOneAndDelete({ _id: second!._id })
      await again(late)
    })

    it('wait after a 429 for at least the requested delay', async () => {
      await newEndpoint(world, 'https://a.test/', organizationId)
      await hand(world, organizationId, null, ['doc_1'])
      receivers.headers = { 'retry-after': '3600' }
      receivers.answering = () => 429
      await sendAll(world)
      clock.advance(3_599_000)
      await sendAll(world)
      expect(numbers()).toEqual([1])
      clock.advance(1_000)
      await sendAll(world)
      expect(numbers()).toEqual([1, 1])
    })

    it('are redelivered with the same ID after a crash during delivery', async () => {
      await newEndpoint(world, 'https://a.test/', organizationId)
      await hand(world, organizationId, null, ['doc_1', 'doc_1'])
      const requested = Promise.withResolvers<void>()
      receivers.answering = () => {
        requested.resolve()
        return new Promise(() => undefined)
      }
      await world.sender.sendDue(new AbortController().signal)
      await requested.promise
      const next = openSender(store, clock, receivers)
      receivers.answering = () => 200
      await sendAll(next)
      expect(numbers()).toEqual([])
      clock.advance(LEASE_MS + 1)
      await sendAll(next)
      expect(numbers()).toEqual([1, 2])
    })

    it('continue to other endpoints while one does not respond, with at most four concurrent deliveries to it', async () => {
      await newEndpoint(world, 'https://silent.test/', organizationId)
      await newEndpoint(world, 'https://well.test/', organizationId)
      const stuck = Promise.withResolvers<number>()
      receivers.answering = ({ url }) => (url === 'https://silent.test/' ? stuck.promise : 200)
      await hand(
        world,
        organizationId,
        null,
        Array.from({ length: 12 }, (_, i) => `doc_${i}`),
      )
      const { signal } = new AbortController()
      while (receivers.sent.length < 12) {
        await world.sender.sendDue(signal)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(receivers.sent.every(({ url }) => url === 'https://well.test/')).toBe(true)
      expect(receivers.underWay).toBe(4)
      stuck.resolve(200)
      await world.sender.idle()
      await sendAll(world)
      expect(receivers.sent).toHaveLength(24)
    })

    it('continue to other organizations while no endpoint of one responds', async () => {
      const other = `org_${randomHex(32)}`
      const silent = Promise.withResolvers<null>()
      receivers.answering = ({ url }) => (url.includes('silent') ? silent.promise : 204)
      for (let i = 0; i < 10; i++) await newEndpoint(world, `https://silent.test/${i}`, organizationId)
      await newEndpoint(world, 'https://good.test/', other)
      const documents = ['doc_1', 'doc_2', 'doc_3', 'doc_4', 'doc_5']
      await hand(world, organizationId, null, documents)
      await hand(world, other, null, documents)
      const { signal } = new AbortController()
      for (let round = 0; round < 4; round++) await world.sender.sendDue(signal)
      await eventually(() => receivers.sent.filter(({ url }) => url.includes('good')).length > 0)
      expect(receivers.underWay).toBeLessThanOrEqual(16)
      silent.resolve(null)
      await world.sender.idle()
    })

    it('reach no other organization, and stop once the endpoint is deleted', async () => {
      const id = await newEndpoint(world, 'https://a.test/', organizationId)
      const otherOrganizationId = `org_${randomHex(32)}`
      await newEndpoint(world, 'https://b.test/', otherOrganizationId)
      await hand(world, organizationId, null, ['doc_1'])
      await sendAll(world)
      expect(receivers.sent.map(({ url }) => url)).toEqual(['https://a.test/'])
      receivers.answering = () => 500
      await hand(world, organizationId, 1, ['doc_1'])
      await sendAll(world)
      await deleteEndpoint(world.deps, createPrincipal(organizationId, ['admin']), id)
      clock.advance(DAY_MS)
      await sendAll(world)
      expect(receivers.sent).toHaveLength(2)
      expect(await world.deps.collections.webhookLanes.find({ endpointId: id }, { limit: 1 })).toEqual([])
    })

    it('are signed with both secrets for a day after a rotation', async () => {
      const id = await newEndpoint(world, 'https://a.test/', organizationId)
      const signatures: string[] = []
      const open = receivers.open.bind(receivers)
      receivers.open = (request) => {
        signatures.push(request.headers!['webhook-signature']!)
        return open(request)
      }
      await rotateSecret(world.deps, createPrincipal(organizationId, ['admin']), id)
      await hand(world, organizationId, null, ['doc_1'])
      await sendAll(world)
      clock.advance(DAY_MS)
      await hand(world, organizationId, 1, ['doc_1'])
      await sendAll(world)
      expect(signatures.map((signature) => signature.split(' ').length)).toEqual([2, 1])
    })

    it('are deleted after 14 days', async () => {
      const id = await newEndpoint(world, 'https://a.test/', organizationId)
      receivers.answering = () => 500
      await hand(world, organizationId, null, ['doc_1'])
      await sendAll(world)
      clock.advance(RETENTION_MS + 1)
      await sweepWebhooks(world.deps, '')
      expect(await statuses(id)).toEqual([])
      await sendAll(world)
      expect(await world.deps.collections.webhookLanes.find({ endpointId: id }, { limit: 1 })).toEqual([])
      expect(numbers()).toEqual([1])
    })
  })

describe('Webhook delivery', () => {
  it('never connects to internal addresses, whatever a name resolves to by then', async () => {
    const store = new MemoryDocumentStore()
    let address = '93.184.215.14'
    let whenResolved = async () => undefined as unknown
    const dialed: string[] = []
    const egress = new Egress({
      resolve: async () => {
        await whenResolved()
        return [{ address, family: 4 }]
      },
      dial: (addresses) => (_options, callback) => {
        dialed.push(...(addresses ?? []).map((each) => each.address))
        callback(new Error('nobody there'), null)
      },
    })
    const clock = new ManualClock()
    const world = openSender(store, clock, egress)
    await world.deps.collections.organizations.insertOne({
      _id: 'org_1',
      name: 'A',
      residencyPolicy: 'unrestricted',
      plan: 'self-hosted',
      createdAt: clock.now(),
    })
    const id = await newEndpoint(world, 'https://partner.test/', 'org_1')
    await hand(world, 'org_1', null, ['doc_1'])
    await sendAll(world)
    expect(dialed).toEqual(['93.184.215.14'])
    address = '169.254.169.254'
    clock.advance(DAY_MS)
    await sendAll(world)
    expect(dialed).toEqual(['93.184.215.14'])
    const [delivery] = await world.deps.collections.webhookDeliveries.find({ endpointId: id }, { sort: { order: 1 }, limit: 1 })
    // Both have the same text, so that it reveals nothing about the network.
    expect(new Set(delivery!.attempts.map(({ error }) => error)).size).toBe(1)
    expect(delivery!.attempts).toHaveLength(2)
    // The policy changes during the DNS query.
    address = '93.184.215.14'
    whenResolved = async () => {
      await world.deps.collections.organizations.findOneAndUpdate({ _id: 'org_1' }, { $set: { residencyPolicy: 'local_only' } })
    }
    clock.advance(DAY_MS)
    await sendAll(world)
    expect(dialed).toEqual(['93.184.215.14'])
    expect(await world.deps.collections.webhookEndpoints.findOne({ _id: id })).toMatchObject({
      isActive: false,
      disabledReason: 'residency',
    })
  })

  it('loses no event and preserves order when any call of the store fails or its response is lost', async () => {
    for (const effect of ['failed', 'lost answer'] as const)
      for (let nth = 1; nth <= 40; nth++) {
        const store = new MemoryDocumentStore()
        const clock = new ManualClock()
        const receivers = new FakeReceivers()
        const world = openSender(store, clock, receivers)
        await newEndpoint(world, 'https://a.test/', 'org_1')
        store.failCall(nth, effect)
        for (let tries = 0; tries < 2; tries++) await hand(world, 'org_1', null, ['doc_1', 'doc_2', 'doc_1']).catch(() => undefined)
        for (let tries = 0; tries < 3; tries++) {
          await sendAll(world).catch(() => undefined)
          clock.advance(DAY_MS)
        }
        const ofFirst = receivers.sent.filter(({ document }) => document === 'doc_1').map(({ number }) => number)
        expect([effect, nth, ofFirst]).toEqual([effect, nth, ofFirst.toSorted((a, b) => a - b)])
        expect([effect, nth, new Set(receivers.sent.map(({ number }) => number))]).toEqual([effect, nth, new Set([1, 2, 3])])
        expect(new Set(receivers.sent.map(({ id }) => id)).size).toBe(3)
        expect(await world.deps.collections.webhookLanes.find({}, { limit: 10 })).toEqual([])
      }
  })
})
