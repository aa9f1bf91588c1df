import type { Reporter, TestModule, Vitest } from 'vitest/node'

/** Reports after a run which suites were skipped, and why. `onEngine` puts the reason into the name of a suite. */
export default class NotRun implements Reporter {
  #hasLong = true

  onInit({ projects }: Vitest): void {
    this.#hasLong = projects.some(({ name }) => name === 'long')
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const suites = modules.flatMap((module) => [...module.children.suites()])
    const names = suites.map(({ name }) => name).filter((name) => name.includes(': skipped because '))
    for (const name of names.toSorted()) console.log(`Not run: ${name}`)
    if (!this.#hasLong) console.log('Not run: the long suites. `npm run test:all` runs them, those on engines too (test/README.md).')
  }
}
