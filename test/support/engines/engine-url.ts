import { describe, it } from 'vitest'

/**
 * Declares suites on the engine whose address is in the variable. Without it they are skipped by name, with the reason;
 * with `KIS_REQUIRE_ENGINES=1`, as in CI, that is a failure.
 */
export async function onEngine(variable: string, name: string, declare: (url: string) => void | Promise<void>): Promise<void> {
  const url = process.env[variable]
  const reason = `${variable} names no engine (test/engines/README.md)`
  if (url) await declare(url)
  else if (process.env.KIS_REQUIRE_ENGINES === '1') {
    it(name, () => {
      throw new Error(reason)
    })
  } else describe.skip(`${name}: skipped because ${reason}`, () => it('runs', () => undefined))
}
