import { expect, it } from 'vitest'
import { linksIn } from './web-page.ts'

const BASE = 'https://site.example/list'

it('finds the links of a page to its own host, once each', () => {
  const page = `<a href="/a#top">A</a> <A class=x HREF='b?x=1&amp;y=2'>B</A> <a name=here>
    <a href=/a>A</a> <a href="https://other.example/c">C</a> <a href="mailto:x@site.example">D</a> <a href=e>E</a>`
  expect(linksIn(page, BASE, 2)).toEqual(['https://site.example/a', 'https://site.example/b?x=1&y=2'])
  expect(linksIn(page, BASE, 9)).toHaveLength(3)
})

it('finds the URLs that a sitemap lists', () => {
  const sitemap = '<?xml version="1.0"?><urlset><url><loc> https://site.example/a </loc></url><url><loc>/b</loc></url></urlset>'
  expect(linksIn(sitemap, BASE, 9)).toEqual(['https://site.example/a', 'https://site.example/b'])
})

it.each([
  ['page', '', '<a href=//other.example/>', '<a href=/last>'],
  ['page with links without an address', '', '<a name=x>', '<a href=/last>'],
  ['sitemap', '<urlset>', '<loc>//other.example/</loc>', '<loc>/last</loc>'],
])('reads at most 10,000 links of a %s', (_, head, other, last) => {
  expect(linksIn(head + other.repeat(9_999) + last, BASE, 1)).toEqual(['https://site.example/last'])
  expect(linksIn(head + other.repeat(10_000) + last, BASE, 1)).toEqual([])
})
