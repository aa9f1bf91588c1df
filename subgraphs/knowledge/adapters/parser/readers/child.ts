/**
 * The process that reads one document. It takes the request on standard input, writes the answer to standard output,
 * and ends. It runs without the service's environment and without a network, and may read only its own code. The parent
 * kills it if it takes too much time or memory.
 */
import '../no-network.ts'
import { Console } from 'node:console'
import { once } from 'node:events'
import { ParseFailure } from '../../../ports/document-parser.ts'
import {
  encodeDocument,
  encodeFailure,
  encodeInnerHead,
  encodePage,
  encodePages,
  type ParseRequest,
  type RecogniseRequest,
  readRequest,
  type UnpackRequest,
} from '../wire.ts'
import { DocumentBuilder } from './document-builder.ts'
import { readDocument } from './read-document.ts'

// A library that prints to standard output would break the answer.
globalThis.console = new Console(process.stderr)

/** The interval at which the child checks that its parent is alive. A parent that was killed cannot end it. */
const PARENT_CHECK_MS = 1_000

const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent) process.exit(1)
}, PARENT_CHECK_MS).unref()

async function parse({ mediaType, limits, defersOcr }: ParseRequest, file: Uint8Array): Promise<Buffer> {
  const builder = new DocumentBuilder(limits, defersOcr, (done, total) => process.stdout.write(encodePages(done, total)))
  const pageCount = await readDocument(mediaType, file, builder, limits)
  return encodeDocument(builder.build(mediaType, pageCount))
}

/** Writes a line for each page. Ends before a page that cannot be recognised, after which the engine cannot be trusted. */
async function recognise(request: RecogniseRequest, file: Uint8Array): Promise<void> {
  const { PageReader } = await import('../ocr/page-reader.ts')
  const { recognisePages } = await import('../ocr/recognise-pages.ts')
  const reader = await PageReader.open()
  try {
    for await (const page of recognisePages(reader, file, request)) process.stdout.write(encodePage(page))
  } catch (error) {
    process.stderr.write(String(error))
  }
}

/** Writes each inner file that is not too large, as fast as the parent reads. */
async function writeInnerFiles({ unpack: mediaType, limits }: UnpackRequest, file: Uint8Array): Promise<void> {
  const { unpack } = await import('./unpack.ts')
  for await (const { name, bytes } of unpack(mediaType, file, limits)) {
    const own = bytes && bytes.length <= limits.maxInnerBytes ? bytes : null
    process.stdout.write(encodeInnerHead(name, own?.length ?? null))
    if (own && !process.stdout.write(own)) await once(process.stdout, 'drain')
  }
}

const input = await readRequest(process.stdin)
// An unused spare child gets no input.
if (!input) process.exit(0)
const { request, file } = input
if ('unpack' in request) {
  await writeInnerFiles(request, file).catch((error: unknown) => {
    if (!(error instanceof ParseFailure)) throw error
    process.stdout.write(encodeFailure(error))
  })
  process.stdout.write('', () => process.exit(0))
} else if ('pages' in request) {
  await recognise(request, file)
  process.stdout.write('', () => process.exit(0))
} else {
  const response = await parse(request, file).catch((error: unknown) => {
    if (error instanceof ParseFailure) return encodeFailure(error)
    throw error
  })
  process.stdout.write(response, () => process.exit(0))
}
