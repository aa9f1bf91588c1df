import { expect, it } from 'vitest'
import { NeverSent } from '../ports/engines.ts'
import { withDeadline } from './deadline.ts'

const tooLate = () => new Error('too late')
const hanging = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error("the driver's own words"))))

it('work within its deadline returns its value or its error', async () => {
  expect(await withDeadline(10_000, tooLate, null, async () => 5)).toBe(5)
  await expect(withDeadline(10_000, tooLate, null, () => Promise.reject(new Error('its own')))).rejects.toThrow('its own')
})

it('late work is reported, and fails with the reason', async () => {
  await expect(withDeadline(1, tooLate, null, hanging)).rejects.toThrow('too late')
})

it('work is aborted by its given signal, even one that is aborted already', async () => {
  const controller = new AbortController()
  const work = withDeadline(10_000, tooLate, controller.signal, hanging)
  controller.abort()
  await expect(work).rejects.toThrow('words')
  await withDeadline(10_000, tooLate, controller.signal, async (signal) => expect(signal.aborted).toBe(true))
})

it('work that is late before the engine call says so, with the reason', async () => {
  const queued = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(new NeverSent(signal.reason))))
  const error = await withDeadline(1, tooLate, null, queued).catch((thrown) => thrown)
  expect([error, error.cause]).toMatchObject([{ name: 'NeverSent' }, { message: 'too late' }])
})
