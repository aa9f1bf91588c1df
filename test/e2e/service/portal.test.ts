import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const BROWSER = { accept: 'text/html', 'accept-language': 'ar' }
/** A build on a busy machine. */
const BUILT_MS = 170_000

let service: Service
beforeAll(async () => {
  service = await startEmbedded({ env: { KIS_PORTAL: 'on' } })
}, 90_000)
afterAll(() => service?.close())

it('the service is ready before its portal, reports its URL, and serves the build', async () => {
  const { lines } = service.processes.get('all')!
  expect(lines.at(-2)).toBe(`portal for browsers: ${service.rest}/`)
  const open = (path: string, headers: Record<string, string> = BROWSER) => fetch(`${service.rest}${path}`, { headers, redirect: 'manual' })
  await eventually(async () => (await open('/')).status === 200, BUILT_MS)
  const page = await (await open('/keys')).text()
  expect(page).toContain('<html lang="ar" dir="rtl">')
  expect(page).not.toMatch(/<script>|<style|\son\w+=|https?:\/\//)
  const files = [...page.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(2)
  for (const file of files) {
    const asset = await open(file, { 'accept-encoding': 'br' })
    expect([file, asset.status, asset.headers.get('cache-control')]).toEqual([file, 200, 'public, max-age=31536000, immutable'])
  }
  const api = await open('/', { accept: 'application/json' })
  expect([api.status, api.headers.get('location')]).toEqual([302, '/docs'])
  expect((await open('/docs')).status).toBe(200)
  for (const [accept, type] of [
    ['text/html', 'html'],
    ['application/json', 'json'],
  ] as const) {
    const unknown = await open('/nothing', { accept })
    expect([unknown.status, unknown.headers.get('content-type')]).toEqual([404, expect.stringContaining(type)])
  }
}, 200_000)
