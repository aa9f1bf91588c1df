import { buildSchema } from 'graphql'
import { expect, it } from 'vitest'
import { acceptedSince, findBreaks, isAccepted, lastRelease } from './breaks.ts'

const BEFORE = buildSchema('type Query { a(n: Int): Int! b: Int } enum Mood { CALM WILD } type Mutation { mood: Mood }')

it('reports changes that break clients, and no additions', async () => {
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

it('accepts breaking changes that the change log lists since the release', async () => {
  const changes = `# Changelog

## [Unreleased]

### Breaking

- Breaking for GraphQL: fields of \`Query.*\` are nullable,
  and \`Query.b\` takes another \`n\`.

### API

- \`Query.c\` is faster.

## [0.2.0] - 2026-11-22

### Breaking

- Breaking for GraphQL: \`Mood.WILD\` is gone.
`
  const before = buildSchema('type Query { a: Int! b(n: Int): Int c(n: Int): Int! d: Int! bb: Int } enum Mood { CALM WILD }')
  const after = buildSchema('type Query { a: Int b(n: ID): Int c(n: ID): Int d: ID } enum Mood { CALM }')
  const accepted = acceptedSince('0.2.0', changes)
  const sorted: Record<'fine' | 'refused', string[]> = { fine: [], refused: [] }
  for (const each of await findBreaks(before, after)) sorted[isAccepted(each, accepted) ? 'fine' : 'refused'].push(each.coordinate)
  expect(sorted.fine.toSorted()).toEqual(['Query.a', 'Query.b.n', 'Query.c'])
  expect(sorted.refused.toSorted()).toEqual(['Mood.WILD', 'Query.bb', 'Query.c.n', 'Query.d'])
  expect(lastRelease(changes)).toBe('0.2.0')
})
