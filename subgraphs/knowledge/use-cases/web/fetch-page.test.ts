import fc from 'fast-check'
import robotsModule from 'robots-parser'
import { expect, it } from 'vitest'
import { principal } from '../../../../test/support/knowledge.ts'
import type { Egress, EgressRequest } from '../../../common/egress/egress.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { Accounts } from '../../ports/accounts.ts'
import { fetchPage } from './fetch-page.ts'

let sites = 0
const requestedUrls: string[] = []

/** Fetches a page of a new site with this robots.txt. */
function fetchFrom(robots: string, path = 'a'.repeat(2_000), findPrincipal: Accounts['findPrincipal'] = async () => principal) {
  const fetched = async ({ url, authorize }: EgressRequest) => {
    await authorize?.(url)
    requestedUrls.push(url)
    const body = Buffer.from(url.endsWith('/robots.txt') ? robots : 'page')
    return { status: 200, headers: {}, body, url }
  }
  // Only these two members are used.
  const egress = { allows: () => true, fetch: fetched } as unknown as Egress
  const url = `https://site-${sites++}.example/${path}`
  return fetchPage(
    { accounts: { findPrincipal }, egress, log: silentLog },
    principal,
    url,
    { etag: null, lastModified: null },
    new AbortController().signal,
  )
}

it('fetches a page that robots.txt allows', async () => {
  expect((await fetchFrom('User-agent: *\nDisallow: /private*\n'))?.bytes.toString()).toBe('page')
})

it('fetches nothing that the current policy forbids, nor a page after its robots.txt was read', async () => {
  for (const [reads, fetches] of [
    [1, 0],
    [2, 1],
  ] as const) {
    let read = 0
    requestedUrls.length = 0
    const policy = () => (++read < reads ? 'unrestricted' : 'local_only')
    const fetching = fetchFrom('', 'a', async () => ({ ...principal, residencyPolicy: policy() }))
    await expect(fetching).rejects.toMatchObject({ code: 'residency_policy_violation' })
    expect(requestedUrls).toHaveLength(fetches)
  }
})

it('fetches nothing that robots.txt forbids', async () => {
  await expect(fetchFrom('User-agent: *\nDisallow: /')).rejects.toMatchObject({ code: 'invalid_request', reason: 'robots_forbid' })
})

it('fetches nothing of a site whose robots.txt would take long to evaluate', async () => {
  const rules = Array.from({ length: 20_000 }, (_, i) => `Disallow: /*a*a*a*${i}`).join('\n')
  const long = `Disallow: /*${'a'.repeat(1_000)}b\n`
  for (const robots of [
    `User-agent: *\n${rules}`,
    `User-agent: *\nDisallow: /${'*'.repeat(500_000)}b`,
    `User-agent: *\n${long.repeat(500)}`,
  ])
    await expect(fetchFrom(robots)).rejects.toMatchObject({
      code: 'invalid_request',
      reason: 'robots_unreadable',
      message: expect.stringContaining('robots.txt'),
    })
})

it('evaluates short paths of a site with many wildcards', async () => {
  const rules = Array.from({ length: 3_000 }, (_, i) => `Disallow: /*?filter${i}=*`).join('\n')
  await expect(fetchFrom(`User-agent: *\n${rules}`, 'products/1?filter7=red')).rejects.toMatchObject({ reason: 'robots_forbid' })
  expect(await fetchFrom(`User-agent: *\n${rules}`, 'products/1')).not.toBeNull()
})

it.each([
  ['many names of others', (i: number) => `x${i}`],
  ['one name many times', () => '*'],
])('reads a robots.txt of the largest size with %s', async (_, nameOf) => {
  const names = Array.from({ length: 16_000 }, (_, i) => `User-agent:${nameOf(i)}`).join('\n')
  const robots = `${names}\nUser-agent: *\n${'Allow:/a\n'.repeat(25_000)}Disallow: /private`
  expect(robots.length).toBeLessThan(512 * 1024)
  await expect(fetchFrom(robots, 'private')).rejects.toMatchObject({ reason: 'robots_forbid' })
  expect(await fetchFrom(robots, 'a')).not.toBeNull()
})

it('uses the groups that name the service, or else those for all, like the parser of the whole file', async () => {
  const AGENT = 'knowledge-and-inference-service'
  const parse = robotsModule as unknown as (url: string, text: string) => { isAllowed(url: string, agent: string): boolean }
  const line = fc.constantFrom(
    ...['*', AGENT, `${AGENT.toUpperCase()}/1.0 # us`, ` ${AGENT} `, `${AGENT}-image`, `${AGENT}:1`, '*/2', 'Googlebot', '', '#'].map(
      (name) => `User-agent: ${name}`,
    ),
    `user-agent :${AGENT}`,
    '\ufeffUSER-AGENT:*',
    `# User-agent: ${AGENT}`,
    'Disallow: /',
    'Disallow: /a',
    ' disallow : /a/b # all of it',
    'Allow: /a',
    'Allow: /a/b',
    'Disallow:',
    'Disallow: /*b$',
    'Crawl-delay: 5',
    'Sitemap: https://example.com/sitemap.xml',
    'Host: example.com',
    'Unknown: x',
    ': x',
    'no colon',
    '   ',
    '',
  )
  const file = fc.tuple(fc.array(line, { maxLength: 14 }), fc.constantFrom('\n', '\r\n', '\r'), fc.constantFrom('', '\ufeff'))
  await fc.assert(
    fc.asyncProperty(file, fc.constantFrom('', 'a', 'a/b', 'c'), async ([lines, feed, mark], path) => {
      const robots = mark + lines.join(feed)
      const isAllowed = parse('https://x.example/robots.txt', robots).isAllowed(`https://x.example/${path}`, AGENT)
      const fetched = fetchFrom(robots, path)
      if (isAllowed) expect(await fetched).not.toBeNull()
      else await expect(fetched).rejects.toMatchObject({ reason: 'robots_forbid' })
    }),
    { numRuns: 1_000 },
  )
})
