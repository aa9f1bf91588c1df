import { randomBytes } from 'node:crypto'

/** The variable that names the engine for `onEngine`; `test/engines/elasticsearch/start.sh` starts one. */
export const ELASTICSEARCH = 'KIS_TEST_ELASTICSEARCH_URL'

/** Index names of one test run on a shared engine. */
export interface TestIndices {
  /** A prefix that nothing has used. */
  newPrefix(): string
  /** Drops every index under the prefixes given out. */
  dropAll(): Promise<void>
}

export function testIndices(url: string): TestIndices {
  const run = `kis-test-${randomBytes(5).toString('hex')}`
  let given = 0
  return {
    newPrefix: () => `${run}-${given++}`,
    async dropAll() {
      // By name, because a server refuses to delete by pattern unless it is told to allow it.
      const listed = await fetch(`${url}/_cat/indices/${run}-*?h=index`)
      const names = (await listed.text()).split('\n').filter(Boolean)
      if (names.length) await fetch(`${url}/${names.join(',')}`, { method: 'DELETE' })
    },
  }
}
