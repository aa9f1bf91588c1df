import { type OperationDefinitionNode, parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { readSdl } from '../../schema/sdl.ts'
import type { Link } from '../../subgraphs/common/link/link.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import type { Prepared } from '../documents.ts'
import { Federation } from './federation.ts'

const text = 'subscription { walletChanged { cursor } }'
const document = parse(text)
const operation = document.definitions[0] as OperationDefinitionNode
const prepared: Prepared = { document, alone: document, text, operation, operationName: undefined, hash: 'hash', requirements: [] }
const context = { caller: { organizationId: 'org_a' } as never, requestId: 'req_1', signal: new AbortController().signal }
const cursors = ['1', '2']

describe('Subscription to one subgraph', () => {
  /** Starts a subscription. `pulled` counts the events that were requested upstream. */
  const start = async () => {
    const seen = { subscribed: 0, executed: 0, pulled: 0, ended: 0 }
    const link: Pick<Link, 'subscribe' | 'execute'> = {
      async execute() {
        seen.executed++
        return { data: null }
      },
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
    const links = { billing: link, inference: link, knowledge: link } as unknown as Record<string, Link>
    const federation = await Federation.open(readSdl('supergraph'), links)
    return { seen, subscribe: () => federation.subscribe(prepared, {}, context) }
  }

  it('passes its events on, to their end', async () => {
    const { seen, subscribe } = await start()
    const events = subscribe()
    for (const cursor of cursors) expect(await events.next()).toEqual({ done: false, value: { data: { walletChanged: { cursor } } } })
    expect(await events.next()).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ subscribed: 1, executed: 0, pulled: 3, ended: 1 })
  })

  it('starts nothing upstream when it ends during planning', async () => {
    const { seen, subscribe } = await start()
    const events = subscribe()
    const pending = events.next()
    events.end()
    expect(await pending).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ subscribed: 0, executed: 0, pulled: 0, ended: 0 })
  })

  it('ends upstream when it ends later', async () => {
    const { seen, subscribe } = await start()
    const events = subscribe()
    await events.next()
    events.end()
    expect(await events.next()).toEqual({ done: true, value: undefined })
    expect(seen).toEqual({ subscribed: 1, executed: 0, pulled: 1, ended: 1 })
  })

  it('executes nothing while many callers wait for its plan', async () => {
    const { seen, subscribe } = await start()
    const firsts = await Promise.all(Array.from({ length: 20 }, () => subscribe().next()))
    expect(firsts.filter(({ done }) => !done)).toHaveLength(2)
    expect(seen).toMatchObject({ subscribed: 20, executed: 0 })
  })
})
