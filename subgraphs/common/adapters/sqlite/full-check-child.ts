import { DatabaseSync } from 'node:sqlite'

/** A separate process that reads one whole file, and writes its problems as a JSON list. */

const MAX_PROBLEMS = 20
const MAX_CHARACTERS = 500
/** A reader may wait for the writer's checkpoint. */
const BUSY_TIMEOUT_MS = 10_000

function findProblems(file: string): readonly string[] {
  try {
    using database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
    const rows = database.prepare(`PRAGMA integrity_check(${MAX_PROBLEMS})`).all() as { integrity_check: string }[]
    const lines = rows.flatMap((row) => row.integrity_check.split('\n'))
    return lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
  } catch (error) {
    return [(error as Error).message]
  }
}

const problems = findProblems(process.argv[2]!)
console.log(JSON.stringify(problems.slice(0, MAX_PROBLEMS).map((problem) => problem.slice(0, MAX_CHARACTERS))))
