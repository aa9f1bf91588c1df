/** Maximum length of a followed URL. Browsers send no longer ones. */
export const MAX_URL_CHARACTERS = 2_048
/** Characters of a page or a sitemap that are searched for links. The standard's largest sitemap has 50 MB. */
const LINKS_CHARACTERS = 5_000_000
/**
 * Maximum links that are examined, whether or not they match. Each takes about a microsecond, and 5,000,000 characters
 * can contain 500,000.
 */
const MAX_EXAMINED = 10_000

const META_CHARSET = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i
const LINK_TAG = /<a\s([^<>]{1,3000})/gi
const HREF = /(?:^|\s)href\s*=\s*(?:"([^"]{1,2048})"|'([^']{1,2048})'|([^\s"'>]{1,2048}))/i
const LOC = /<loc>\s*([^<\s]{1,2048})\s*<\/loc>/gi

/** Decodes a page by the charset of its response header or its `meta` tag. Default: UTF-8. */
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
 * Returns the distinct URLs of the same host that a page links to or a sitemap lists, in order, without fragments.
 * Examines at most `MAX_EXAMINED` links.
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

/** Yields the links unchanged, within the searched part of the text. Null is a link without an address. */
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

/** Whether the text is a sitemap that lists sitemaps. */
export function isSitemapIndex(text: string): boolean {
  return isSitemap(text) && /<(?:\w{1,20}:)?sitemapindex[\s>]/i.test(text.slice(0, 4_096))
}
