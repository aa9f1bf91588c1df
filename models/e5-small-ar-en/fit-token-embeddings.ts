// Finds what makes token states small and comparable: their means by purpose and language, and the 128 directions in
// which those of passages differ most.
//
//   node fit-token-states.ts TEXTS.json > token-states.f32
//
// TEXTS.json: `[{ "purpose": "query" | "passage", "language": "ar" | "en", "text": "…" }]`. Shipped: the passages and
// the questions of the development halves of XQuAD and of `test/eval`, and general-questions.txt; nothing of which
// question a passage answers. The file has little-endian 32-bit floats: the means of passages in Arabic and in English
// and of questions in Arabic and in English, 384 each, then 384 rows of 128.
import { readFileSync } from 'node:fs'
import { Tokenizer } from '@huggingface/tokenizers'
import * as ort from 'onnxruntime-node'

const FULL = 384
const WIDTH = 128
/** Of `<s>` and of the prefix. */
const LEADING_TOKENS = { passage: 3, query: 4 }
const MAX_TOKENS = 512
/** Every so many states of passages count for the directions. */
const SAMPLED = 12
const ROUNDS = 40

interface Text {
  readonly purpose: 'query' | 'passage'
  readonly language: 'ar' | 'en'
  readonly text: string
}

const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
const texts = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as readonly Text[]
const tokenizer = new Tokenizer(JSON.parse(read('tokenizer.json')), JSON.parse(read('tokenizer_config.json')))
const session = await ort.InferenceSession.create(new URL('model.onnx', import.meta.url).pathname, { intraOpNumThreads: 1 })

/** The states of a text's own tokens, one after the other. */
async function hiddenStatesOf({ purpose, text }: Text): Promise<Float32Array> {
  const ids = tokenizer.encode(`${purpose}: ${text}`).ids.slice(0, MAX_TOKENS)
  const shape = [1, ids.length]
  const feeds = {
    input_ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), shape),
    attention_mask: new ort.Tensor('int64', new BigInt64Array(ids.length).fill(1n), shape),
    // Of the output `token_embeddings`, which is not read.
    token_mean: new ort.Tensor('int64', new BigInt64Array(1), [1]),
  }
  const { last_hidden_state: hiddenStates } = await session.run(feeds, ['last_hidden_state'])
  return (hiddenStates!.data as Float32Array).subarray(LEADING_TOKENS[purpose] * FULL, (ids.length - 1) * FULL)
}

const sums = new Map<string, { readonly sum: Float64Array; count: number }>()
const sample: { readonly group: string; readonly state: Float32Array }[] = []
for (const text of texts) {
  const group = `${text.purpose} ${text.language}`
  const hiddenStates = await hiddenStatesOf(text)
  const of = sums.get(group) ?? { sum: new Float64Array(FULL), count: 0 }
  sums.set(group, of)
  for (let at = 0; at < hiddenStates.length; at += FULL, of.count++) {
    for (let i = 0; i < FULL; i++) of.sum[i]! += hiddenStates[at + i]!
    if (text.purpose === 'passage' && of.count % SAMPLED === 0) sample.push({ group, state: hiddenStates.slice(at, at + FULL) })
  }
}
const meanOf = (group: string) => sums.get(group)!.sum.map((x) => x / sums.get(group)!.count)
const means = new Map(['passage ar', 'passage en', 'query ar', 'query en'].map((group) => [group, meanOf(group)]))

const spread = new Float64Array(FULL * FULL)
for (const { group, state } of sample) {
  const rest = Float64Array.from(state, (x, i) => x - means.get(group)![i]!)
  const length = Math.hypot(...rest)
  for (let i = 0; i < FULL; i++) for (let j = 0; j < FULL; j++) spread[i * FULL + j]! += (rest[i]! * rest[j]!) / length ** 2
}

/** Makes columns of length 1 at right angles to each other (Gram-Schmidt). */
function straighten(columns: Float64Array): Float64Array {
  for (let j = 0; j < WIDTH; j++) {
    for (let before = 0; before < j; before++) {
      let dot = 0
      for (let i = 0; i < FULL; i++) dot += columns[i * WIDTH + j]! * columns[i * WIDTH + before]!
      for (let i = 0; i < FULL; i++) columns[i * WIDTH + j]! -= dot * columns[i * WIDTH + before]!
    }
    let squares = 0
    for (let i = 0; i < FULL; i++) squares += columns[i * WIDTH + j]! ** 2
    for (let i = 0; i < FULL; i++) columns[i * WIDTH + j]! /= Math.sqrt(squares)
  }
  return columns
}

let axes = straighten(Float64Array.from({ length: FULL * WIDTH }, (_, i) => Math.sin(i * i)))
for (let round = 0; round < ROUNDS; round++) {
  const next = new Float64Array(FULL * WIDTH)
  for (let i = 0; i < FULL; i++)
    for (let k = 0; k < FULL; k++) for (let j = 0; j < WIDTH; j++) next[i * WIDTH + j]! += spread[i * FULL + k]! * axes[k * WIDTH + j]!
  axes = straighten(next)
}
process.stdout.write(new Uint8Array(Float32Array.from([...[...means.values()].flatMap((mean) => [...mean]), ...axes]).buffer))
