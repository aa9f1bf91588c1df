import { hash } from 'node:crypto'
import { type OperationDefinitionNode, parse } from 'graphql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSupergraph } from '../../schema/composed.ts'
import type { Link } from '../../subgraphs/common/link/link.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import type { Prepared } from '../documents.ts'
import { type LoadedSupergraph, loadSupergraph } from './loaded-supergraph.ts'
import { FederatedSubscriptions } from './subscriptions.ts'

const text = 'subscription { walletChanged { cursor } }'
const document = parse(text)
const operation = document.definitions[0] as OperationDefinitionNode
const prepared: Prepared = { document, text, operation, operationName: undefined, hash: hash('sha256', text), requirements: [] }
const context = { caller: { organizationId: 'org_a' } as never, requestId: 'req_1', signal: new AbortController().signal }
const cursors = ['1', '2']

describe('a subscription to one subgraph', () => {
  let loaded: LoadedSupergraph
  beforeAll(async () => {
    loaded = await loadSupergraph(readSupergraph().supergraphSdl)
  })
  afterAll(() => loaded?.[Symbol.asyncDispose]())

  /** Planning waits for `plan()`. `pulled` counts the events that were asked for upstream. */
  const begin = () => {
    const seen = { subscribed: 0, pulled: 0, ended: 0 }
    const { promise: maySay, resolve: plan } = Promise.withResolvers<void>()
    const supergraph: LoadedSupergraph = {
      ...loaded,
      async plan(...asked) {
        await maySay
        return loaded.plan(...asked)
      },
    }
    const billing: Pick<Link, 'subscribe'> = {
      subscribe() {
        seen.subscribed++
        return endableIterator(
          async () => {
            const cursor = cursors[seen.pulled++]
            return cursor ? { done: false, value: { data: { walletChanged: { cursor } } } } : { done: true, value: undefined }
          },
          () => void seen.ended++,
        )
      },
    }
    const requests = { planned: () => undefined }
    const subscriptions = new FederatedSubscriptions({ supergraph, links: { billing }, services: {}, requests } as never)
    return { seen, plan, events: subscriptions.subscribe(prepared, {}, context) }
  }

  it('passes its events on, to their end', async () => {
    const { seen, plan, events } = begin()
    plan()
    for (const cursor of cursors) expect(await events.next()).toEqual({ done: false, value: { data: { walletChanged: { cursor } } } })
    expect(await events.next()).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ subscribed: 1, pulled: 3, ended: 1 })
  })

  it('begins nothing upstream when it ends while it is planned', async () => {
    const { seen, plan, events } = begin()
    const pending = events.next()
    events.end()
    plan()
    expect(await pending).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ subscribed: 0, pulled: 0, ended: 0 })
  })

  it('ends upstream when it ends later', async () => {
    const { seen, plan, events } = begin()
    plan()
    await events.next()
    events.end()
    expect(await events.next()).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ subscribed: 1, pulled: 1, ended: 1 })
  })
})
