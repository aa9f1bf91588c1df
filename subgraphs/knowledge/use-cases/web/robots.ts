import robotsModule from 'robots-parser'

/** The service's user agent, in requests and in robots.txt. */
export const AGENT = 'knowledge-and-inference-service'

/**
 * Maximum work per checked address: characters of lines with a wildcard times characters of the address. It takes 0.1
 * s. An address of 80 characters can be matched against 250,000 characters of such lines, the longest address against
 * 10,000.
 */
const MAX_WORK = 20_000_000

/** The package's types describe its other build. */
const parse = robotsModule as unknown as (url: string, text: string) => { isAllowed(url: string, agent: string): boolean | undefined }

/** The rules of a robots.txt for this service. */
export interface Robots {
  /** Characters of the retained lines. Each takes at most some 30 bytes of memory. */
  readonly size: number
  /** Null: the check would take too long. */
  isAllowed(address: string): boolean | null
}

/** @param url of the robots.txt, to whose origin the rules apply. */
export function parseRobots(url: string, text: string): Robots {
  const lines = selectOwnGroups(text)
  const own = lines.join('\n')
  const rules = parse(url, own)
  const wild = lines.reduce((sum, line) => sum + (line.includes('*') ? line.length : 0), 0)
  return {
    size: own.length,
    isAllowed: (address) => (wild * address.length > MAX_WORK ? null : rules.isAllowed(address, AGENT) !== false),
  }
}

/**
 * Returns the lines of the groups that name the service or everyone, with each of the two names once per group. The
 * parser stores every rule of a group once per name: a file of half names and half rules would become 500,000,000
 * entries.
 */
function selectOwnGroups(text: string): readonly string[] {
  const selected: string[] = []
  const names = new Set<string>()
  let isNaming = false
  for (const line of text.split(/\r\n|\r|\n/)) {
    const said = line.split('#', 1)[0]!
    const colon = said.indexOf(':')
    const field = said.slice(0, Math.max(0, colon)).trim().toLowerCase()
    if (field === '') continue
    const wasNaming = isNaming
    isNaming = field === 'user-agent'
    if (!isNaming) {
      if (names.size > 0) selected.push(said)
      continue
    }
    // A name after a rule starts a new group.
    if (!wasNaming) names.clear()
    const name = said
      .slice(colon + 1)
      .split('/', 1)[0]!
      .trim()
      .toLowerCase()
    if ((name !== AGENT && name !== '*') || names.has(name)) continue
    names.add(name)
    selected.push(said)
  }
  return selected
}
