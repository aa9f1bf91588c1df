import robotsModule from 'robots-parser'

/** How the service calls itself, to sites and in their robots.txt. */
export const AGENT = 'knowledge-and-inference-service'

/**
 * The work of judging one address: characters of lines with a wildcard, times characters of the address. This much takes
 * 0.1 s. An address of 80 characters may meet 250,000 characters of such lines, the longest address 10,000.
 */
const MAX_WORK = 20_000_000

/** The package's types describe its other build. */
const parse = robotsModule as unknown as (url: string, text: string) => { isAllowed(url: string, agent: string): boolean | undefined }

/** What a robots.txt says to this service. */
export interface Robots {
  /** Characters of the lines that are kept. Each takes some 30 bytes of memory at most. */
  readonly size: number
  /** Null: it would take too long to tell. */
  isAllowed(address: string): boolean | null
}

/** @param url of the robots.txt, whose origin the rules are for. */
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
 * The lines of the groups that name the service or everyone, with each of the two names once in a group. The parser keeps
 * every rule of a group once for each of its names: a file of half names and half rules would become 500,000,000.
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
    // A name after a rule begins a group.
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
