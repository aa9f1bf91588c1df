/**
 * What is wrong with the configuration. Each problem is a sentence on one line that names the variable or the place in
 * a file.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}
