import { buildSchema } from 'graphql'
import { expect, it } from 'vitest'
import { acceptedSince, findBreaks, isAccepted } from './breaks.ts'

const BEFORE = buildSchema('type Query { a(n: Int): Int! b: Int } enum Mood { CALM WILD } type Mutation { mood: Mood }')

it('finds what breaks clients, and nothing that is only new', async () => {
  const after = buildSchema('type Query { a(n: Int!): Int! c: Int } enum Mood { CALM } type Mutation { mood: Mood }')
  const breaks = await findBreaks(BEFORE, after)
  expect(breaks.map(({ coordinate }) => coordinate).toSorted()).toEqual(['Mood.WILD', 'Query.a.n', 'Query.b'])
  expect(
    await findBreaks(
      BEFORE,
      buildSchema('type Query { a(n: Int): Int! b: Int c: Int } enum Mood { CALM WILD } type Mutation { mood: Mood }'),
    ),
  ).toEqual([])
})

it('accepts the breaks that the change log names since the release', async () => {
  const changes = `# Changes

## 0.3.0

- Breaking for GraphQL: fields of \`Mutation.*\` are nullable,
  and \`Query.a\` takes another \`n\`.
- \`Query.b\` is faster.

## 0.2.0

- Breaking for GraphQL: \`Mood.WILD\` is gone.
`
  const accepted = acceptedSince('0.2.0', changes)
  const isFine = (coordinate: string) => isAccepted({ coordinate, message: '' }, accepted)
  expect(['Mutation.mood', 'Query.a', 'Query.a.n'].map(isFine)).toEqual([true, true, true])
  expect(['Query.b', 'Query.ab', 'Mood.WILD', 'Mutation'].map(isFine)).toEqual([false, false, false, false])
})
