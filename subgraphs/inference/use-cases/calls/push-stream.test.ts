import fc from 'fast-check'
import { expect, it } from 'vitest'
import { streamEvents } from './push-stream.ts'

const NEVER = new AbortController().signal

async function all<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const got = []
  for await (const event of events) got.push(event)
  return got
}

it('yields every event in order, and the result of the work as the last one', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.nat()), fc.array(fc.boolean()), async (pushed, pauses) => {
      const events = streamEvents<number>(NEVER, async (push, signal) => {
        for (const [i, event] of pushed.entries()) {
          if (pauses[i]) await new Promise(setImmediate)
          await push(event, signal)
        }
        return -1
      })
      expect(await all(events)).toEqual([...pushed, -1])
      expect(await events.next()).toEqual({ done: true, value: undefined })
    }),
  ))

it('starts with the first next, and never continues before its reader requests more', async () => {
  let steps = 0
  const events = streamEvents<number>(NEVER, async (push, signal) => {
    for (; ; steps++) await push(steps, signal)
  })
  await new Promise(setImmediate)
  expect(steps).toBe(0)
  await events.next()
  await events.next()
  await new Promise(setImmediate)
  expect(steps).toBe(1)
  await events.return?.()
})

it('fails when the work fails, even without a reader, and then ends', async () => {
  const failed = Promise.withResolvers<void>()
  const events = streamEvents<number>(NEVER, async (push) => {
    const late = new AbortController()
    setImmediate(() => late.abort(new Error('too late')))
    await push(1, late.signal).finally(() => failed.resolve())
    return 2
  })
  expect(await events.next()).toEqual({ done: false, value: 1 })
  await failed.promise
  await expect(events.next()).rejects.toThrow('too late')
  expect(await events.next()).toEqual({ done: true, value: undefined })
})

it.each(['return', 'abort'] as const)('ends the work by %s while a next is pending', async (way) => {
  const leaving = new AbortController()
  const ended = Promise.withResolvers<void>()
  const events = streamEvents<number>(leaving.signal, (_push, signal) => {
    signal.addEventListener('abort', () => ended.resolve())
    return new Promise<never>(() => undefined)
  })
  const pending = events.next()
  if (way === 'return') await events.return?.()
  else leaving.abort()
  expect(await pending).toEqual({ done: true, value: undefined })
  await ended.promise
})
