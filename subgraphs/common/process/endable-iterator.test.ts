import { describe, expect, it, vi } from 'vitest'
import { changedSteps, endableIterator } from './endable-iterator.ts'

const DONE = { done: true, value: undefined }
const item = (value: number) => ({ done: false, value }) as const
const never = () => new Promise<never>(() => {})

describe('Endable iterator', () => {
  it('takes one step after another, even if they are requested concurrently', async () => {
    let pulled = 0
    const events = endableIterator<number>(
      async () => item(++pulled),
      () => {},
    )
    expect(await Promise.all([events.next(), events.next(), events.next()])).toEqual([item(1), item(2), item(3)])
  })

  it.each(['by its return()', 'by its signal'])('ends immediately while steps are pending: %s', async (how) => {
    const end = vi.fn()
    const stop = new AbortController()
    const events = endableIterator<number>(never, end, stop.signal)
    const pending = [events.next(), events.next()]
    if (how === 'by its signal') stop.abort()
    else await events.return!()
    expect(await Promise.all(pending)).toEqual([DONE, DONE])
    expect(await events.next()).toEqual(DONE)
    expect(end).toHaveBeenCalledTimes(1)
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
  ])('ends when a step %s', async (_how, pull) => {
    const end = vi.fn()
    const events = endableIterator<number>(pull, end)
    await expect(events.next()).rejects.toThrow('broken')
    expect(await events.next()).toEqual(DONE)
    expect(end).toHaveBeenCalledTimes(1)
  })
})

describe('Mapped iterator', () => {
  const counting = (end = () => {}) => {
    let pulled = 0
    return endableIterator<number>(async () => (++pulled > 2 ? { done: true, value: undefined } : item(pulled)), end)
  }

  it('yields the mapped steps of the source, synchronously or not, to its end', async () => {
    const seen: number[] = []
    for await (const value of changedSteps(counting(), (step) => (step.done ? step : item(step.value * 10)))) seen.push(value)
    for await (const value of changedSteps<number, number>(counting(), async (step) => (step.done ? step : item(step.value * 100))))
      seen.push(value)
    expect(seen).toEqual([10, 20, 100, 200])
  })

  it('ends the source immediately, even while a step is being mapped', async () => {
    const end = vi.fn()
    const events = changedSteps<number, number>(counting(end), never)
    const pending = events.next()
    await new Promise(setImmediate)
    await events.return!()
    expect(await pending).toEqual(DONE)
    expect(end).toHaveBeenCalledTimes(1)
  })

  it('may map an error of the source to a step', async () => {
    const broken = endableIterator<number>(
      () => Promise.reject(new Error('broken')),
      () => {},
    )
    const events = changedSteps<number, number>(
      broken,
      (step) => step,
      () => item(-1),
    )
    expect(await events.next()).toEqual(item(-1))
    expect(await events.next()).toEqual(DONE)
  })
})
