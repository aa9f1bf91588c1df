import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import type { DocumentRecord, FileRecord } from '../../domain/records.ts'
import { toTranscript } from '../../domain/transcript.ts'
import { type ParsedDocument, ParseFailure } from '../../ports/document-parser.ts'
import type { CallContext, SpokenSegment } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { readBytes } from '../files/files.ts'

/**
 * Has a speech model write down what is said in a document's file. The transcript is kept as long as the document: a
 * repeat, and a repair of its index, ask and pay for no other.
 * @throws {ParseFailure} `no_text` if nothing is said.
 * @throws {KisError} as `Inference.transcribe`.
 */
export async function transcribeAudio(
  deps: Pick<Deps, 'store' | 'blobs' | 'inference'>,
  { _id }: Pick<DocumentRecord, '_id'>,
  file: FileRecord,
  modelId: string,
  context: CallContext,
): Promise<ParsedDocument> {
  const key = `${_id}_speech_${file._id}`
  const stored = await deps.blobs.get(key)
  const segments = stored
    ? (JSON.parse(Buffer.from(stored).toString()) as readonly SpokenSegment[])
    : await hear(deps, file, modelId, { ...context, step: `${_id}/${file._id}/${modelId}` })
  if (!stored) await deps.blobs.put(key, Buffer.from(JSON.stringify(segments)))
  const document = toTranscript(file.mediaType, segments)
  if (document.text === '')
    throw new ParseFailure(
      'no_text',
      `The model \`${modelId}\` heard no speech in the file. Check that it has some, and that it is loud enough.`,
    )
  return document
}

async function hear(
  deps: Pick<Deps, 'store' | 'blobs' | 'inference'>,
  file: FileRecord,
  modelId: string,
  context: CallContext & { readonly step: string },
): Promise<readonly SpokenSegment[]> {
  try {
    return await deps.inference.transcribe(modelId, await readBytes(deps, file), context)
  } catch (error) {
    if (!(error instanceof KisError)) throw error
    // Another process has been at it a moment ago. It ends or its lease does, so this is no failure of the document.
    if (error.code === 'idempotency_conflict' && error.shouldRetry) throw new ServiceUnavailable('The transcription', { cause: error })
    if (error.code === 'unsupported_value') throw new ParseFailure('unsupported_type', error.message, { cause: error })
    if (error.code === 'payload_too_large') throw new ParseFailure('limit_exceeded', error.message, { cause: error })
    throw error
  }
}
