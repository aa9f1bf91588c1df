import fc from 'fast-check'
import { soaking } from './soak.ts'

/**
 * The time of one fuzzing suite: short in CI, and seven and a half minutes with `npm run fuzz`, which is half an hour
 * for the four suites of the contract.
 */
const FUZZ_MS = Number(process.env.KIS_FUZZ_SECONDS ?? (soaking ? 450 : 12)) * 1_000
/**
 * `npm run test:all` always starts with the same seed, so that a failure comes from a change of the code. A longer run
 * looks for new failures.
 */
const isNew = soaking || process.env.KIS_FUZZ_SECONDS !== undefined
/** The number of cases from one seed. They run one after the other, so that the seed alone reproduces a fault. */
const CASES_OF_SEED = 25
/** The number of different faults after which a run stops. */
const MAX_FAULTS = 20
/** The number of characters of a case that a report shows. */
const SHOWN = 1_500

/** The timeout of a fuzzing test. It includes the cases under way at the end and the checks after them. */
export const FUZZ_TIMEOUT_MS = FUZZ_MS + 120_000

export interface Fuzzed {
  readonly cases: number
  /** The faults, one of each kind, with the seed that reproduces it. */
  readonly faults: readonly string[]
}

/**
 * Judges generated cases until the time is over, and prints the seeds. `judge` returns what is wrong with a case, or
 * null. `KIS_FUZZ_SEED` runs the cases of one seed only.
 */
export async function fuzz<Case>(
  name: string,
  arbitrary: fc.Arbitrary<Case>,
  judge: (generated: Case) => Promise<string | null>,
  show: (generated: Case) => string,
  afterSeed: () => Promise<void> = async () => undefined,
): Promise<Fuzzed> {
  const only = process.env.KIS_FUZZ_SEED === undefined ? undefined : Number(process.env.KIS_FUZZ_SEED)
  const first = only ?? (isNew ? Math.floor(Math.random() * 2 ** 30) : 1)
  const until = Date.now() + FUZZ_MS
  const faults = new Map<string, string>()
  let cases = 0
  let seed = first
  for (; seed === first || (only === undefined && Date.now() < until && faults.size < MAX_FAULTS); seed++) {
    for (const [index, each] of fc.sample(arbitrary, { seed, numRuns: CASES_OF_SEED }).entries()) {
      if (only === undefined && Date.now() >= until) break
      cases++
      const fault = await judge(each)
      if (fault !== null && !faults.has(classifyFault(fault)))
        faults.set(classifyFault(fault), `${fault}\n  case ${index} of KIS_FUZZ_SEED=${seed}: ${show(each).slice(0, SHOWN)}`)
    }
    await afterSeed()
  }
  console.info(`fuzz ${name}: ${cases} cases, seeds ${first} to ${seed - 1}`)
  return { cases, faults: [...faults.values()] }
}

/** Returns a fault without the details that differ within one kind. */
const classifyFault = (fault: string) => fault.slice(0, 300).replaceAll(/\d+|`[^`]*`|"[^"]*"/g, '#')
