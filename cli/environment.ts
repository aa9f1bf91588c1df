export type Environment = Readonly<Record<string, string | undefined>>

const OWN = /^KIS_/
/** Of the commands, of the documentation's examples and of the tests; a shell may have them where it starts the service. */
const OTHERS = /^KIS_(?:API_KEY$|URL$|SOAK$|TEST_|REQUIRE_|FUZZ_)/
/** What Kubernetes sets in every container for a service whose name begins with `kis`. */
const OF_KUBERNETES = { name: /_SERVICE_(?:HOST|PORT)|_PORT_\d+_/, value: /^(?:tcp|udp|sctp):/ }
/** A slip or two; also `KIS_` before a name that has none. */
const MAX_DISTANCE = 4

/**
 * The environment as the parts read it: an empty variable is one that is not set. What was read is what the service knows, so `ignored` is to be
 * called when all have read; it gives a sentence for each `KIS_` variable that is set and that nobody has read.
 */
export function readingOf(environment: Environment): { readonly env: Environment; ignored(): readonly string[] } {
  const known = new Set<string>()
  const env = new Proxy(environment, {
    get(target, name) {
      known.add(String(name))
      return target[String(name)] || undefined
    },
  })
  const isOfOthers = (name: string) => OTHERS.test(name) || OF_KUBERNETES.name.test(name) || OF_KUBERNETES.value.test(environment[name]!)
  return {
    env,
    ignored() {
      const unknown = Object.keys(environment).filter(
        (name) => OWN.test(name) && environment[name] && !known.has(name) && !isOfOthers(name),
      )
      return unknown.map((name) => {
        const nearest = nearestOf(name, known)
        return `${name} is not a setting of this version and is ignored${nearest ? `; did you mean ${nearest}?` : ''}`
      })
    },
  }
}

function nearestOf(name: string, known: Iterable<string>): string | undefined {
  const distances = [...known].map((candidate) => ({ candidate, distance: distanceOf(name, candidate) }))
  return distances.filter(({ distance }) => distance <= MAX_DISTANCE).sort((a, b) => a.distance - b.distance)[0]?.candidate
}

/** Letters to put in, leave out or change (Levenshtein), row by row of the table. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const above = row
    row = [i]
    for (let j = 1; j <= b.length; j++) row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
  }
  return row[b.length]!
}
