// Finds the mean embedding of general questions in each language, which searches subtract:
//
//   node fit-calibration.ts MIDPOINT SLOPE > calibration.json
//
// general-questions.txt: English and Arabic questions about anything, one pair a line, written for this (CC0 1.0).
// MIDPOINT and SLOPE: the logistic curve from a passage's closeness to whether it answers, fitted on the ten best
// passages of the development halves of XQuAD and `test/eval` (see docs/measurements.md).
import { readFileSync } from 'node:fs'
import { Tokenizer } from '@huggingface/tokenizers'
import * as ort from 'onnxruntime-node'

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
const [midpoint, slope] = process.argv.slice(2).map(Number)
const pairs = read('general-questions.txt').trim().split('\n')
const tokenizer = new Tokenizer(JSON.parse(read('tokenizer.json')), JSON.parse(read('tokenizer_config.json')))
const session = await ort.InferenceSession.create(new URL('model.onnx', import.meta.url).pathname)

async function embed(text: string): Promise<Float32Array> {
  const { ids } = tokenizer.encode(`query: ${text}`)
  const shape = [1, ids.length]
  const feeds = {
    input_ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), shape),
    attention_mask: new ort.Tensor('int64', new BigInt64Array(ids.length).fill(1n), shape),
  }
  return (await session.run(feeds, ['neutral_embedding'])).neutral_embedding!.data as Float32Array
}

async function meanOf(texts: readonly string[]): Promise<readonly number[]> {
  const sum = new Float64Array(384)
  for (const text of texts) for (const [i, x] of (await embed(text)).entries()) sum[i]! += x / texts.length
  return Array.from(sum, (x) => Math.round(x * 1e6) / 1e6)
}

const english = await meanOf(pairs.map((pair) => pair.split('|')[0]!))
const arabic = await meanOf(pairs.map((pair) => pair.split('|')[1]!))
console.log(JSON.stringify({ midpoint, slope, arabic_anchor: arabic, english_anchor: english }))
