// Makes `vocabulary.bin`: the tokens of OpenAI's tiktoken (MIT) as gpt-tokenizer (MIT) has them, in 0.7 MB, where that
// package takes 30 MB on disk and 20 MB of memory.
//
//   node pack-vocabulary.ts
import { writeFileSync } from 'node:fs'
import table from 'gpt-tokenizer/bpeRanks/cl100k_base'
import { packVocabulary } from '../../subgraphs/inference/adapters/cl100k/vocabulary.ts'

const tokens = Array.from(table as readonly (string | readonly number[])[], (token) => Buffer.from(token as string))
writeFileSync(new URL('vocabulary.bin', import.meta.url), packVocabulary(tokens))
