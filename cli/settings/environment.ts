import { readFileSync, statSync } from 'node:fs'

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

const OWN = /^KIS_/
/**
 * Variables of the commands, of the documentation's examples and of the tests. A shell may have them set when it starts
 * the service.
 */
const OTHERS = /^KIS_(?:API_KEY$|URL$|SOAK$|BACKUP_PASSPHRASE(?:_FILE)?$|TEST_|REQUIRE_|FUZZ_)/
/** Variables that Kubernetes sets in every container for a service whose name starts with `kis`. */
const OF_KUBERNETES = { name: /_SERVICE_(?:HOST|PORT)|_PORT_\d+_/, value: /^(?:tcp|udp|sctp):/ }
/** Bytes of a file that holds a setting. A certificate is the longest such setting. */
const MAX_FILE_BYTES = 65_536
/** Edits between a variable and its misspelling: a typing mistake or two, or a missing `KIS_`. */
const MAX_DISTANCE = 4

/**
 * Wraps the environment so that it tracks which variables are read. An empty variable counts as not set. If `NAME` is
 * not set and `NAME_FILE` is, the value is the text of that file, without trailing line breaks. Call `problems` and
 * `ignored` after all parts have read theirs: they return sentences for the files that could not be read, and for each
 * `KIS_` variable that is set but was never read.
 */
export function trackReads(environment: Environment): {
  readonly env: Environment
  problems(): readonly string[]
  ignored(): readonly string[]
} {
  const known = new Set<string>()
  const problems = new Set<string>()
  const env: Environment = new Proxy(environment, {
    // A schema reads only properties that exist, so a variable whose value is in a file must exist.
    has: (_target, property) => env[String(property)] !== undefined,
    get(target, property) {
      const name = String(property)
      const named = `${name}_FILE`
      known.add(name).add(named)
      const file = target[named]
      if (!file) return target[name] || undefined
      if (target[name]) problems.add(`${name} and ${named} are both set: unset one`)
      try {
        return readSetting(file)
      } catch (error) {
        problems.add(`${named} names a file that cannot be read: ${(error as Error).message}`)
        return undefined
      }
    },
  })
  const isOfOthers = (name: string) => OTHERS.test(name) || OF_KUBERNETES.name.test(name) || OF_KUBERNETES.value.test(environment[name]!)
  return {
    env,
    problems: () => [...problems],
    ignored() {
      const unknown = Object.keys(environment).filter(
        (name) => OWN.test(name) && environment[name] && !known.has(name) && !isOfOthers(name),
      )
      return unknown.map((name) => {
        const nearest = findNearest(name, known)
        return `${name} is not a setting of this version and is ignored${nearest ? `; did you mean ${nearest}?` : ''}`
      })
    },
  }
}

function readSetting(file: string): string | undefined {
  if (statSync(file).size > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`)
  return readFileSync(file, 'utf8').trimEnd() || undefined
}

/** Returns the known name that a misspelled one most likely means. */
export function findNearest(name: string, known: ReadonlySet<string>): string | undefined {
  const plain = name.replace(/^KIS_/, '')
  if (known.has(plain)) return plain
  const distances = [...known].map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
  return distances.filter(({ distance }) => distance <= MAX_DISTANCE).sort((a, b) => a.distance - b.distance)[0]?.candidate
}

/** Returns the number of letters to insert, delete or replace (Levenshtein), computed row by row of the table. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const above = row
    row = [i]
    for (let j = 1; j <= b.length; j++) row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
  }
  return row[b.length]!
}
