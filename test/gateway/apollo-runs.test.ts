import { expect, it } from 'vitest'
import { functionsOf } from '../support/running-functions.ts'
import { collect, connect, startGateway } from './support/start.ts'

const LIST = 'documents { title author { name } }'

it('a warm list over HTTP runs through Apollo Server and Apollo Gateway', async () => {
  const { post } = await startGateway()
  const run = async () => expect((await post({ query: `{ ${LIST} }` })).body.data.documents).toHaveLength(3)
  for (let i = 0; i < 3; i++) await run()
  expect(await functionsOf('@apollo/gateway', run)).toEqual(expect.arrayContaining(['executeQueryPlan', 'executeFetch', 'computeResponse']))
  expect(await functionsOf('@apollo/server', run)).toContain('processGraphQLRequest')
})

it('the events of a warm subscription are completed by Apollo Gateway', async () => {
  const { wsUrl } = await startGateway()
  const { client } = connect(wsUrl)
  const run = async () => {
    const stream = collect(client, 'subscription { ticks(count: 1) { documents { title } } }')
    await stream.over
    expect(stream.results).toHaveLength(1)
  }
  await run()
  expect(await functionsOf('@apollo/gateway', run)).toContain('executeQueryPlan')
})
