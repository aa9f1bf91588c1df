import { randomBytes } from 'node:crypto'

/** The environment variable for `onEngine`. `test/engines/elasticsearch/start.sh` starts an engine. */
export const ELASTICSEARCH = 'KIS_TEST_ELASTICSEARCH_URL'

/** The index names of one test run on a shared engine. */
export interface TestIndices {
  /** Returns an unused prefix. */
  newPrefix(): string
  /** Drops every index under the prefixes that were returned. */
  dropAll(): Promise<void>
}

export function testIndices(url: string): TestIndices {
  const run = `kis-test-${randomBytes(5).toString('hex')}`
  let assigned = 0
  return {
    newPrefix: () => `${run}-${assigned++}`,
    async dropAll() {
      // Delete by name, because a server refuses patterns by default.
      const listed = await fetch(`${url}/_cat/indices/${run}-*?h=index`)
      const names = (await listed.text()).split('\n').filter(Boolean)
      if (names.length) await fetch(`${url}/${names.join(',')}`, { method: 'DELETE' })
    },
  }
}
