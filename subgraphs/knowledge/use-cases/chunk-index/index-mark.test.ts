import { expect, it } from 'vitest'
import { addReady, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { createContext, depsOn, principal } from '../../../../test/support/knowledge.ts'
import { silentLog } from '../../../common/process/log.ts'
import { checkTerms, hasOldTerms } from './index-mark.ts'
import { rebuildIndex } from './rebuild-index.ts'

const index = await openTestIndex()
const operator = createContext({ ...principal, scopes: ['operator'] })

it('warns at startup until an index of an earlier version is rebuilt, and never of a new one', async () => {
  const deps = depsOn(newWorld({ index }))
  const warnings: string[] = []
  const log = Object.assign(Object.create(silentLog), { warn: (_fields: unknown, message: string) => void warnings.push(message) })
  const start = () => checkTerms({ ...deps, log })
  await start()
  expect(await hasOldTerms(deps)).toBe(false)

  await addReady(deps, await newCollection(deps), 'a.txt', 'The harbour of Sur.')
  await start()
  expect(warnings).toEqual([])

  // An earlier version has left no mark.
  await deps.store.indexMarks.findOneAndDelete({ _id: 'terms' })
  await start()
  await start()
  expect(warnings).toEqual([expect.stringContaining('kis reindex'), expect.stringContaining('kis reindex')])
  expect(await hasOldTerms(deps)).toBe(true)
  let after: string | null = null
  do after = (await rebuildIndex(deps, operator, after)).next
  while (after !== null)
  expect(await hasOldTerms(deps)).toBe(false)
  await deps.store.indexMarks.findOneAndUpdate({ _id: 'terms' }, { $set: { version: 0 } })
  expect(await hasOldTerms(deps)).toBe(true)
})
