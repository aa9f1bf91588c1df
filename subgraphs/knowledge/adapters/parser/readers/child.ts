/**
 * The process that reads one document: request on standard input, answer on standard output, then it ends. It runs
 * without the service's environment and may read the code it consists of and nothing else, without a network; it is
 * killed when it takes too long or too much.
 */
import '../no-network.ts'
import '../pdf/worker-glyphs.ts'
import { Console } from 'node:console'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { decodeRequest, encodeDocument, encodeFailure, type ParseRequest } from '../wire.ts'
import { DocumentBuilder } from './document-builder.ts'
import { readDocument } from './read-document.ts'

// Libraries that print would break the answer on standard output.
globalThis.console = new Console(process.stderr)

/** How often the child looks whether its parent is still there; a parent that was killed cannot end it. */
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

async function readInput(): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of process.stdin) pieces.push(piece)
  return Buffer.concat(pieces)
}

const input = await readInput()
// A spare that is ended without work gets no input.
if (input.length === 0) process.exit(0)
const { request, file } = decodeRequest(input)
const answer = await parse(request, file).catch((error: unknown) => {
  if (error instanceof ParseFailure) return encodeFailure(error)
  throw error
})
process.stdout.write(answer, () => process.exit(0))
