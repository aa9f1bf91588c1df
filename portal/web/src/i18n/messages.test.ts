import { expect, it, vi } from 'vitest'

const coming: (() => Promise<void>)[] = []
vi.mock('../data/load-module.ts', () => ({
  loadModule: <Module>(load: () => Promise<Module>) => new Promise<Module>((resolve) => coming.push(() => load().then(resolve))),
}))
vi.mock('./preferences.ts', () => ({ readPreferences: () => ({ language: 'en' }), watchPreferences: () => undefined }))

it('shows all registered messages, in any order of registration', async () => {
  const { shownMessages, wantMessages } = await import('./messages.ts')
  const first = coming.splice(0)
  const page = wantMessages(['keys'])
  await Promise.all(coming.splice(0).map((come) => come()))
  await page
  expect(shownMessages()!.messages).toHaveProperty(['keys.create'])
  await Promise.all(first.map((come) => come()))
  await new Promise((resolve) => setTimeout(resolve))
  expect(shownMessages()!.messages).toHaveProperty(['keys.create'])
  expect(shownMessages()!.messages).toHaveProperty(['common.actions'])
})
