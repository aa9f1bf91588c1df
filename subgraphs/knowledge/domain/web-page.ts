/** Longest address that is followed. Browsers send no longer ones. */
export const MAX_URL_CHARACTERS = 2_048
/** Characters of a page or a sitemap that are searched for links. The standard's largest sitemap has 50 MB. */
const LINKS_CHARACTERS = 5_000_000
/** Links that are examined, wherever they lead. Each takes about a microsecond, and 5,000,000 characters hold 500,000. */
const MAX_EXAMINED = 10_000

const META_CHARSET = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i
const LINK_TAG = /<a\s([^<>]{1,3000})/gi
const HREF = /(?:^|\s)href\s*=\s*(?:"([^"]{1,2048})"|'([^']{1,2048})'|([^\s"'>]{1,2048}))/i
const LOC = /<loc>\s*([^<\s]{1,2048})\s*<\/loc>/gi

/** The text of a page by the charset that its answer or itself names; UTF-8 otherwise. */
export function decodePage(bytes: Uint8Array, contentType: string | undefined): string {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 1_024)).toString('latin1')
  const charset = /charset\s*=\s*"?([\w-]{1,40})/i.exec(contentType ?? '')?.[1] ?? META_CHARSET.exec(head)?.[1]
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

/**
 * The addresses that a page links to, or that a sitemap lists: of the same host, each once, in order, without what comes
 * after `#`. Examines `MAX_EXAMINED` links at most.
 */
export function linksIn(text: string, base: string, most: number): readonly string[] {
  const { host } = new URL(base)
  const found = new Set<string>()
  for (const link of readLinks(text).take(MAX_EXAMINED)) {
    if (found.size === most) break
    const url = link && URL.parse(link.replaceAll(/&(?:amp|#38|#x26);/gi, '&'), base)
    if (!url || url.host !== host || !/^https?:$/.test(url.protocol)) continue
    url.hash = ''
    if (url.href.length <= MAX_URL_CHARACTERS) found.add(url.href)
  }
  return [...found]
}

/** The links as they are written, as far as the text is searched. Null is a link without an address. */
function* readLinks(text: string): Generator<string | null> {
  const searched = text.slice(0, LINKS_CHARACTERS)
  if (isSitemap(text)) for (const { 1: loc } of searched.matchAll(LOC)) yield loc!
  else
    for (const { 1: attributes } of searched.matchAll(LINK_TAG)) {
      const href = HREF.exec(attributes!)
      yield href && (href[1] ?? href[2] ?? href[3])!
    }
}

function isSitemap(text: string): boolean {
  return /^[\s\ufeff]*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--[^>]{0,1000}-->\s*)*<(?:\w{1,20}:)?(?:urlset|sitemapindex)[\s>]/i.test(
    text.slice(0, 4_096),
  )
}

/** A sitemap that lists sitemaps. */
export function isSitemapIndex(text: string): boolean {
  return isSitemap(text) && /<(?:\w{1,20}:)?sitemapindex[\s>]/i.test(text.slice(0, 4_096))
}
