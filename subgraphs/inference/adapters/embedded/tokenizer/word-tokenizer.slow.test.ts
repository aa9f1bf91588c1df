import { readFileSync } from 'node:fs'
import { Tokenizer } from '@huggingface/tokenizers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { packUnigram, Unigram } from './unigram.ts'
import { WordTokenizer } from './word-tokenizer.ts'

const MODEL = new URL('../../../../../models/e5-small-ar-en/', import.meta.url)
const json = (name: string) => JSON.parse(readFileSync(new URL(name, MODEL), 'utf8'))
const { model } = json('tokenizer.json') as { readonly model: { readonly vocab: [string, number][]; readonly unk_id: number } }
const byWord = await WordTokenizer.load(MODEL)
const whole = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'))

/** The library's tokens. It adds a space to the start of each text; our tokenizer adds none. */
const expected = (text: string) => whole.encode(text, { add_special_tokens: false }).ids

const piece = fc.constantFrom(...model.vocab.map(([text]) => text.replaceAll('▁', ' ')))
const letters = fc.constantFrom(
  ...'ابتثجحخدذرزسشصضطظعغفقكلمنهويىةءآأؤإئًٌٍَُِّْٰـabcxyzéßﬁ0123٠١٢٪،؛؟.,-/<>s½①ｓ´¨\u00a0\u3000\u0301\u0001\u007f漢🌙',
)
const word = fc
  .oneof(
    fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join('')),
    fc.array(letters, { minLength: 1, maxLength: 12 }).map((all) => all.join('')),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
    fc.constantFrom('<s>', '</s>x', 'a<unk>b<pad>', '＜s＞', '\ud83c', '\udf19\ud83c', 'ـ'.repeat(40)),
  )
  // The words of a text: what stands between the characters that the tokenizer treats as spaces.
  .map((text) => text.replaceAll(/[\t\n\f\r \u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]+/g, ''))
  .filter((text) => text !== '')

it('tokenizes any word like the library', () => {
  fc.assert(
    fc.property(word, (text) => {
      expect(byWord.tokens(text)).toEqual(expected(text))
    }),
    { numRuns: 5_000 },
  )
})

it('tokenizes each vocabulary entry like the library', () => {
  for (const [text] of model.vocab.slice(4).filter((_, index) => index % 7 === 0)) {
    const bare = text.replaceAll('▁', '')
    if (bare !== '') expect([bare, byWord.tokens(bare)]).toEqual([bare, expected(bare)])
  }
})

it('tokenizes the parts of a text like the whole text', () => {
  const texts = [
    readFileSync(new URL('README.md', MODEL), 'utf8').trim(),
    'السَّلامُ عليكم ورحمةُ الله — ٢٠٢٦م، «نصّ» مع English وأرقام 12.5%!',
    'ﬁne\u00a0print\u200bhere\tnow\r\nline … ½ ①',
    'a  b   c',
    'emoji 🌙🚀 and 漢字',
  ]
  for (const text of texts) expect(byWord.tokens(text)).toEqual(expected(text))
})

it('ships the file that is generated from the vocabulary', () => {
  const packed = packUnigram(model.vocab, model.unk_id)
  expect(Buffer.compare(packed, readFileSync(new URL('vocabulary.bin', MODEL)))).toBe(0)
})

it('refuses a corrupted vocabulary, and one with a duplicate entry', () => {
  const packed = packUnigram([['a', -1]], 0)
  expect(() => new Unigram(packed.slice(0, -1))).toThrow('corrupted')
  expect(() => new Unigram(packed.map((byte) => byte ^ 1))).toThrow('corrupted')
  for (const piece of ['a', ''])
    expect(() =>
      packUnigram(
        [
          ['a', -1],
          [piece, -2],
        ],
        0,
      ),
    ).toThrow('twice, or is empty')
})
