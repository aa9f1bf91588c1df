import { readFileSync } from 'node:fs'
import './no-telemetry.ts'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { expect, it } from 'vitest'
import { fasterNetwork } from './faster-network.ts'

const model = readFileSync(new URL('../../../../models/e5-small-ar-en/model.onnx', import.meta.url))

async function embed(network: Buffer): Promise<Float32Array> {
  const ids = BigInt64Array.from({ length: 60 }, (_, index) =>
    index === 0 ? 0n : index === 59 ? 2n : BigInt(4 + ((index * 7_919) % 100_000)),
  )
  const session = await InferenceSession.create(network, { intraOpNumThreads: 1 })
  const { neutral_embedding: vector } = await session.run({
    input_ids: new Tensor('int64', ids, [1, 60]),
    attention_mask: new Tensor('int64', new BigInt64Array(60).fill(1n), [1, 60]),
  })
  await session.release()
  return vector!.data as Float32Array
}

it('computes what the network computes, with the same weights in 8 bits', async () => {
  const faster = fasterNetwork(model)
  expect(faster.includes('SkipLayerNormalization')).toBe(false)
  // Twelve layers of 1,769,472 weights each, which took half a byte.
  expect(faster.length - model.length).toBeGreaterThan((12 * 1_769_472) / 2)
  expect(faster.length - model.length).toBeLessThan((12 * 1_769_472) / 2 + 10_000)
  const [before, after] = [await embed(model), await embed(faster)]
  expect(before.reduce((sum, value, index) => sum + value * after[index]!, 0)).toBeGreaterThan(0.9999)
})

it('leaves a network without such parts as it is, and refuses a damaged one', () => {
  const faster = fasterNetwork(model)
  expect(fasterNetwork(Buffer.alloc(0))).toEqual(Buffer.alloc(0))
  expect(() => fasterNetwork(faster)).toThrow('not in blocks of 32')
  expect(() => fasterNetwork(model.subarray(0, 1_000_000))).toThrow('ends too soon')
})
