import { expect, it } from 'vitest'
import { whatStops } from './effects.ts'

const local = { id: 'small', residency: 'LOCAL' } as const
const cloud = { id: 'big', residency: 'CLOUD' } as const
const collection = (name: string, embeddingModel: typeof local | typeof cloud | null, rerankModel: typeof cloud | null = null) => ({
  ...{ id: name, name, embeddingModel, rerankModel, transcriptionModel: null },
})
const agent = (name: string, model: typeof local | typeof cloud | null) => ({ id: name, name, model })

it('names the collections and agents whose models a policy forbids', () => {
  const collections = [collection('stays', local), collection('stops', cloud, cloud), collection('weaker', local, cloud)]
  const {
    collections: stopped,
    weakened,
    agents,
  } = whatStops(['LOCAL', 'REGIONAL'], collections, [agent('works', local), agent('halts', cloud), agent('unknown', null)])
  expect(stopped).toEqual([{ id: 'stops', name: 'stops', models: ['big'] }])
  expect(weakened).toEqual([{ id: 'weaker', name: 'weaker', models: ['big'] }])
  expect(agents).toEqual([{ id: 'halts', name: 'halts', models: ['big'] }])
})

it('finds nothing under a policy that permits all', () => {
  expect(whatStops(['LOCAL', 'REGIONAL', 'CLOUD'], [collection('a', cloud, cloud)], [agent('b', cloud)])).toEqual({
    ...{ collections: [], weakened: [], agents: [] },
  })
})
