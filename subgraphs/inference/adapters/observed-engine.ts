import { isAbort, KisError } from '../../common/errors.ts'
import type { Span, Telemetry } from '../../common/telemetry/telemetry.ts'
import type { EngineCall, EngineParts, ProtocolObject } from '../ports/engines.ts'

/** As GenAI's semantic conventions of OpenTelemetry name them, but for the last two, which they do not have. */
type EngineOperation = 'chat' | 'embeddings' | 'rerank' | 'transcription'

/** Tells of each call of an engine: its time, its first piece, its outcome, and its span. `vendor` is the kind of engine. */
export function observedEngine(
  parts: EngineParts,
  name: string,
  vendor: string,
  telemetry: Pick<Telemetry, 'metrics' | 'tracer'>,
): EngineParts {
  const { metrics, tracer } = telemetry
  const { chat, embedding, transcription, rerank } = parts
  if (!metrics.isOn && !tracer.isOn) return parts

  const start = (operation: EngineOperation, { engineModel, requestId }: EngineCall) => {
    const startedMs = performance.now()
    const span = tracer.start(`${operation} ${engineModel}`, {
      kind: 'client',
      attributes: {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': vendor,
        'gen_ai.request.model': engineModel,
        'kis.engine': name,
        'kis.request_id': requestId,
      },
    })
    let isOver = false
    const end = (outcome: string) => {
      if (isOver) return
      isOver = true
      metrics.observe('kis_engine_seconds', (performance.now() - startedMs) / 1_000, name, operation, outcome)
      span.end(outcome === 'ok' || outcome === 'left' ? undefined : outcome)
    }
    const first = () => {
      const seconds = (performance.now() - startedMs) / 1_000
      metrics.observe('kis_engine_first_token_seconds', seconds, name, operation)
      span.set({ 'gen_ai.response.time_to_first_chunk': seconds })
    }
    return { span, end, first }
  }

  async function once<T>(
    operation: EngineOperation,
    call: EngineCall,
    work: () => Promise<T>,
    onResult?: (result: T, span: Span) => void,
  ): Promise<T> {
    const { span, end } = start(operation, call)
    try {
      const result = await span.within(work)
      onResult?.(result, span)
      end('ok')
      return result
    } catch (error) {
      end(outcomeOf(error))
      throw error
    }
  }

  async function streamed(
    operation: EngineOperation,
    call: EngineCall,
    work: () => Promise<AsyncIterableIterator<readonly ProtocolObject[]>>,
  ) {
    const { span, end, first } = start(operation, call)
    const failed = (error: unknown): never => {
      end(outcomeOf(error))
      throw error
    }
    const chunks = await span.within(work).catch(failed)
    let isFirst = true
    const observed: AsyncIterableIterator<readonly ProtocolObject[]> = {
      async next() {
        const item = await chunks.next().catch(failed)
        if (isFirst && !item.done) first()
        isFirst = false
        if (item.done) end('ok')
        else if (span.isRecording) for (const chunk of item.value) recordUsage(chunk, span)
        return item
      },
      async return(value) {
        end('left')
        return chunks.return ? chunks.return(value) : { done: true, value }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
    return observed
  }

  return {
    ...parts,
    ...(chat && {
      chat: {
        fetchesImages: chat.fetchesImages,
        hasLogprobs: chat.hasLogprobs,
        complete: (call, request, signal) => once('chat', call, () => chat.complete(call, request, signal), recordUsage),
        stream: (call, request, signal) => streamed('chat', call, () => chat.stream(call, request, signal)),
      },
    }),
    ...(embedding && {
      embedding: {
        get calibration() {
          return embedding.calibration
        },
        get maxBatch() {
          return embedding.maxBatch
        },
        countTokens: (...args) => embedding.countTokens(...args),
        ...(embedding.tokenize && { tokenize: (...args: Parameters<typeof embedding.countTokens>) => embedding.tokenize!(...args) }),
        embed: (...args) =>
          once(
            'embeddings',
            args[0],
            () => embedding.embed(...args),
            ({ tokens }, span) => span.set({ 'gen_ai.usage.input_tokens': tokens }),
          ),
      },
    }),
    ...(transcription && {
      transcription: {
        transcribe: (...args) => once('transcription', args[0], () => transcription.transcribe(...args)),
        stream: (...args) => streamed('transcription', args[0], () => transcription.stream(...args)),
      },
    }),
    ...(rerank && {
      rerank: { maxBatch: rerank.maxBatch, rerank: (...args) => once('rerank', args[0], () => rerank.rerank(...args)) },
    }),
  }
}

/** What the vendor says of its answer, beside the text. */
function recordUsage({ id, model, usage }: ProtocolObject, span: Span): void {
  const { prompt_tokens: input, completion_tokens: output } = (usage ?? {}) as Record<string, unknown>
  if (typeof input !== 'number' || typeof output !== 'number') return
  span.set({
    'gen_ai.usage.input_tokens': input,
    'gen_ai.usage.output_tokens': output,
    ...(typeof id === 'string' && { 'gen_ai.response.id': id }),
    ...(typeof model === 'string' && { 'gen_ai.response.model': model }),
  })
}

function outcomeOf(error: unknown): string {
  if (error instanceof KisError) return error.code
  return isAbort(error) ? 'left' : 'internal'
}
