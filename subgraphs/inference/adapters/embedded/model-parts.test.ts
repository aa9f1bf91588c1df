import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import './no-telemetry.ts'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { expect, it } from 'vitest'
import { modelParts } from './model-parts.ts'

const directory = new URL('../../../../models/e5-small-ar-en/', import.meta.url)
const model = readFileSync(new URL('model.onnx', directory))
const outputs = ['neutral_embedding']
/** Bytes of the table of the tokens. */
const TABLE = 22_180_224

it.each([
  { where: 'in them', outside: {}, bytes: model.length },
  { where: 'in the file, if they are large', outside: { file: 'model.onnx' }, bytes: model.length - TABLE },
])('gives parts that together reckon exactly what the whole does, with each weight once $where', async ({ outside, bytes }) => {
  const parts = [...modelParts(model, { cuts: ['l3.x2', 'l7.x2'], outputs, ...outside })]
  expect(parts).toHaveLength(3)
  expect(parts.reduce((sum, part) => sum + part.length, 0)).toBeLessThan(bytes * 1.01)
  const ids = new Tensor('int64', BigInt64Array.from([0n, 1_000n, 2_000n, 3_000n, 2n]), [1, 5])
  const mask = new Tensor('int64', new BigInt64Array(5).fill(1n), [1, 5])
  const whole = await (await InferenceSession.create(model)).run({ input_ids: ids, attention_mask: mask }, outputs)
  const extra = { session: { model_external_initializers_file_folder_path: fileURLToPath(directory) } }
  let state = ids
  for (const part of parts) {
    const session = await InferenceSession.create(part, { extra })
    const input = session.inputNames.find((name) => name !== 'attention_mask')!
    const next = await session.run({ [input]: state, attention_mask: mask })
    state = next[session.outputNames[0]!] as typeof state
  }
  expect(state.data).toEqual(whole.neutral_embedding!.data)
})

it('refuses what is no such model', () => {
  const split = (bytes: Buffer, ...cuts: string[]) => [...modelParts(bytes, { cuts, outputs })]
  expect(() => split(model, 'l99.x2')).toThrow('does not lead to l99.x2')
  expect(() => split(model, 'l7.x2', 'l3.x2')).toThrow('does not lead to l3.x2')
  expect(() => split(model.subarray(0, 1_000_000), 'l3.x2')).toThrow('ends too soon')
  expect(() => split(Buffer.alloc(0))).toThrow('has no graph')
})
