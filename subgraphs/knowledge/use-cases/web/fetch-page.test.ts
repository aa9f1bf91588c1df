import { expect, it } from 'vitest'
import { principal } from '../../../../test/support/knowledge.ts'
import type { Egress } from '../../../common/egress/egress.ts'
import { silentLog } from '../../../common/process/log.ts'
import { fetchPage } from './fetch-page.ts'

let sites = 0

/** Fetches a page of a new site with this robots.txt. */
function fetchFrom(robots: string) {
  const fetched = async ({ url }: { readonly url: string }) => {
    const body = Buffer.from(url.endsWith('/robots.txt') ? robots : 'page')
    return { status: 200, headers: {}, body, url }
  }
  // Only these two members are used.
  const egress = { mayAsk: () => true, fetch: fetched } as unknown as Egress
  const url = `https://site-${sites++}.example/${'a'.repeat(2_000)}`
  return fetchPage({ egress, log: silentLog }, principal, url, { etag: null, lastModified: null }, new AbortController().signal)
}

it('fetches a page that robots.txt allows', async () => {
  expect((await fetchFrom('User-agent: *\nDisallow: /private*\n'))?.bytes.toString()).toBe('page')
})

it('fetches nothing that robots.txt forbids', async () => {
  await expect(fetchFrom('User-agent: *\nDisallow: /')).rejects.toMatchObject({ code: 'invalid_request', reason: 'robots_forbid' })
})

it('fetches nothing of a site whose robots.txt would take long to judge', async () => {
  const rules = Array.from({ length: 20_000 }, (_, i) => `Disallow: /*a*a*a*${i}`).join('\n')
  for (const robots of [`User-agent: *\n${rules}`, `User-agent: *\nDisallow: /${'*'.repeat(500_000)}b`])
    await expect(fetchFrom(robots)).rejects.toMatchObject({
      code: 'invalid_request',
      reason: 'robots_unreadable',
      message: expect.stringContaining('robots.txt'),
    })
})
