// A reporter for vitest. Writes to the file KIS_TALLY the failures, with the start of each reason, then the line `N
// passed, N failed, N skipped`. A failed set-up, a file that could not be loaded and an error that no test awaited
// count as one failure each.
import { writeFileSync } from 'node:fs'

/** Characters of one reason. */
const MOST_CHARACTERS = 3_000

export default class Tally {
  onTestRunEnd(modules, unhandled) {
    const counts = { passed: 0, skipped: 0 }
    const failures = []
    const note = (name, errors) => {
      for (const { message, stack } of errors) failures.push(`FAILED: ${name}\n${(stack ?? message).slice(0, MOST_CHARACTERS)}\n`)
    }
    for (const module of modules) {
      note(module.moduleId, module.errors())
      for (const suite of module.children.allSuites()) note(`${module.moduleId} > ${suite.fullName}`, suite.errors())
      for (const test of module.children.allTests()) {
        const { state, errors = [] } = test.result()
        if (state in counts) counts[state]++
        else {
          const warnings = test.meta().warnings ?? []
          const [error = { message: `it is ${state}` }] = errors
          note([`${module.moduleId} > ${test.fullName}`, ...warnings.map((line) => `the service warned: ${line}`)].join('\n'), [error])
        }
      }
    }
    note('an error that no test awaited', unhandled)
    const line = `${counts.passed} passed, ${failures.length} failed, ${counts.skipped} skipped`
    writeFileSync(process.env.KIS_TALLY, `${failures.join('\n')}${failures.length > 0 ? '\n' : ''}${line}\n`)
  }
}
