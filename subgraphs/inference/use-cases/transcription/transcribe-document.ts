import { textAt } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { readSegments, type Segment } from '../../domain/transcription/segments.ts'
import { checkTranscriptionRequest } from '../../domain/transcription/transcription-request.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { admit } from '../calls/admit.ts'
import { byRulesInForce } from '../calls/principals.ts'
import type { KeyedDeps, Ports, RequestContext } from '../deps.ts'
import { onceForStepOf } from '../idempotency/once-for-step.ts'
import { transcribe } from './transcribe.ts'

/**
 * Longest recording: a meeting or lecture. A call may take 15 minutes, in which speech models process far more than
 * this.
 */
const LONGEST_MS = 4 * 3_600_000
/** Most segments. Speech models return a segment for several seconds. In 4 hours this is one for 0.7 s. */
const MAX_SEGMENTS = 20_000
/** In UTF-16 units. 4 hours of fast speech have half as many, and the result has to fit the record of the call. */
const MAX_CHARACTERS = 512 * 1024

interface DocumentAudio {
  readonly modelId: string
  readonly contentBase64: string
  /** The document and its file, as `document/path`. */
  readonly step: string
}

/**
 * Transcribes the audio of a document for another service, and charges the wallet of the key that attached it. The step
 * is charged once, however often it is repeated and however often a process is killed meanwhile, and also if the
 * document is deleted meanwhile. It consumes nothing of the key's limits, because documents have waited in a fair queue
 * before. Returns the segments with text, in order.
 * @throws {KisError} as `admit` and `transcribe`; nothing is charged.
 * @throws {KisError} `engine_error`: the model returns no segments, or too many.
 * @throws {KisError} `idempotency_conflict`: the step is in progress in another process, or was until a moment ago.
 */
export async function transcribeDocument(
  deps: KeyedDeps,
  requestContext: RequestContext,
  { modelId, contentBase64, step }: DocumentAudio,
): Promise<readonly Segment[]> {
  deps.load.check('background')
  const check = () => checkTranscriptionRequest({ model: modelId, contentBase64, responseFormat: 'verbose_json' })
  const { segments } = await onceForStepOf(deps, requestContext, step, (stepContext) =>
    byRulesInForce(deps, stepContext, (now) =>
      transcribe(
        deps,
        now,
        { scope: null, modelParam: 'modelId', longestMs: LONGEST_MS, check, start: (caller) => ({ ...now, caller }) },
        {
          hear: ({ engine, call, audio, request }, signal) => engine.transcribe(call, audio, request.options, signal),
          convert: (response) => ({ segments: checkedSegments(response, modelId) }),
        },
      ),
    ),
  )
  return segments
}

/**
 * Returns the model's own ID, which is not `modelId` if that is an alias. Money is neither held nor spent.
 * @throws {KisError} as `admit`: the model cannot transcribe, or the caller may not use it.
 */
export function describeTranscriptionModel(deps: Ports, requestContext: RequestContext, modelId: string): Pick<Model, 'id'> {
  const { model } = admit(deps.catalog, requestContext.caller, {
    scope: null,
    kind: 'transcription',
    modelParam: 'id',
    check: () => ({ model: textAt(modelId, 'id') }),
  })
  return { id: model.id }
}

function checkedSegments(response: ProtocolObject, modelId: string): readonly Segment[] {
  const all = readSegments(response)
  if (!all) throw unusable(`The model \`${modelId}\` returns no timestamps. Choose one that returns \`verbose_json\` with segments.`)
  const segments = all.filter(({ text }) => text.trim() !== '').map(({ start, end, text }) => ({ start, end, text }))
  const characters = segments.reduce((sum, { text }) => sum + text.length, 0)
  if (segments.length > MAX_SEGMENTS || characters > MAX_CHARACTERS)
    throw new StoppedByLimit(
      'engine_error',
      `The model \`${modelId}\` heard more than ${MAX_SEGMENTS} segments or ${MAX_CHARACTERS} characters. Split the file.`,
      { shouldRetry: false },
    )
  return segments
}

/** Returns the error for a result that a repeat would return again, while the engine would be paid again. */
function unusable(message: string): KisError {
  return new KisError('engine_error', message, { shouldRetry: false })
}
