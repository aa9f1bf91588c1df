/**
 * The process that reads one document. It takes the request on standard input, writes the answer to standard output,
 * and ends. It runs without the service's environment and without a network, and may read only its own code. The parent
 * kills it if it takes too much time or memory.
 */
import '../no-network.ts'
import '../pdf/worker-glyphs.ts'
import { Console } from 'node:console'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { encodeDocument, encodeFailure, type ParseRequest, readRequest } from '../wire.ts'
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

async function parse({ mediaType, limits }: ParseRequest, file: Uint8Array): Promise<Buffer> {
  const builder = new DocumentBuilder(limits)
  const pageCount = await readDocument(mediaType, file, builder, limits)
  return encodeDocument(builder.build(mediaType, pageCount))
}

const input = await readRequest(process.stdin)
// An unused spare child gets no input.
if (!input) process.exit(0)
const answer = await parse(input.request, input.file).catch((error: unknown) => {
  if (error instanceof ParseFailure) return encodeFailure(error)
  throw error
})
process.stdout.write(answer, () => process.exit(0))
