import type { Reporter, TestModule } from 'vitest/node'

/** Says after a run which suites were skipped, and why. `onEngine` puts the reason into the name of the suite. */
export default class NotRun implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const suites = modules.flatMap((module) => [...module.children.suites()])
    const names = suites.map(({ name }) => name).filter((name) => name.includes(': skipped because '))
    for (const name of names.toSorted()) console.log(`Not run: ${name}`)
  }
}
