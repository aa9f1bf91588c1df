import { readFileSync } from 'node:fs'
import './no-telemetry.ts'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { expect, it } from 'vitest'
import { modelParts } from './model-parts.ts'

const model = readFileSync(new URL('../../../../models/e5-small-ar-en/model.onnx', import.meta.url))

it('gives parts that together reckon exactly what the whole does, and hold its weights once', async () => {
  const parts = modelParts(model, ['l3.x2', 'l7.x2'], ['neutral_embedding'])
  expect(parts).toHaveLength(3)
  expect(parts.reduce((sum, part) => sum + part.length, 0)).toBeLessThan(model.length * 1.01)
  const ids = new Tensor('int64', BigInt64Array.from([0n, 1_000n, 2_000n, 3_000n, 2n]), [1, 5])
  const mask = new Tensor('int64', new BigInt64Array(5).fill(1n), [1, 5])
  const whole = await (await InferenceSession.create(model)).run({ input_ids: ids, attention_mask: mask }, ['neutral_embedding'])
  let state = ids
  for (const part of parts) {
    const session = await InferenceSession.create(part)
    const input = session.inputNames.find((name) => name !== 'attention_mask')!
    const next = await session.run({ [input]: state, attention_mask: mask })
    state = next[session.outputNames[0]!] as typeof state
  }
  expect(state.data).toEqual(whole.neutral_embedding!.data)
})

it('refuses what is no such model', () => {
  expect(() => modelParts(model, ['l99.x2'], ['neutral_embedding'])).toThrow('does not lead to l99.x2')
  expect(() => modelParts(model, ['l7.x2', 'l3.x2'], ['neutral_embedding'])).toThrow('does not lead to l3.x2')
  expect(() => modelParts(model.subarray(0, 1_000_000), ['l3.x2'], ['neutral_embedding'])).toThrow('ends too soon')
  expect(() => modelParts(Buffer.alloc(0), [], ['neutral_embedding'])).toThrow('has no graph')
})
