import { describe, it } from 'vitest'

/**
 * Declares suites on the engine whose address is in the variable. Without the variable, they are skipped with the
 * reason in their name. With `KIS_REQUIRE_ENGINES=1`, as in CI, this is a failure, except for one that cannot be had
 * everywhere.
 */
export async function onEngine(
  variable: string,
  name: string,
  declare: (url: string) => void | Promise<void>,
  { isEverywhere = true }: { readonly isEverywhere?: boolean } = {},
): Promise<void> {
  const url = process.env[variable]
  const reason = `${variable} names no engine (test/engines/README.md)`
  if (url) await declare(url)
  else if (isEverywhere && process.env.KIS_REQUIRE_ENGINES === '1') {
    it(name, () => {
      throw new Error(reason)
    })
  } else describe.skip(`${name}: skipped because ${reason}`, () => it('runs', () => undefined))
}
