import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A span as OTLP over HTTP sends it, in JSON. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly service: string
  readonly failed: boolean
}

type OtlpValue = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean }
type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[]
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes }
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes' | 'service' | 'failed'> & {
        readonly attributes: OtlpAttributes
        readonly status: { readonly code?: number }
      })[]
    }[]
  }[]
}

/** A collector that keeps what it gets. */
export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = []
  /** All that was received, as it came. */
  text = ''
  readonly #server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const text = Buffer.concat(pieces).toString()
    if (request.url === '/v1/traces') {
      this.text += text
      this.spans.push(...readSpans(JSON.parse(text)))
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver()
    receiver.#server.listen(0, '127.0.0.1')
    await once(receiver.#server, 'listening')
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The spans of a trace, as a tree below the spans without a parent here. */
  tree(traceId: string): string {
    const spans = this.spans.filter((span) => span.traceId === traceId)
    const ids = new Set(spans.map(({ spanId }) => spanId))
    const start = Math.min(...spans.map(startMs))
    const below = (parent: string | undefined, depth: number): readonly string[] =>
      spans
        .filter(({ parentSpanId }) => (parent === undefined ? !parentSpanId || !ids.has(parentSpanId) : parentSpanId === parent))
        .sort((a, b) => startMs(a) - startMs(b))
        .flatMap((span) => {
          const took = (Number(span.endTimeUnixNano) - Number(span.startTimeUnixNano)) / 1e6
          const line = `${'  '.repeat(depth)}${span.name}`
          return [
            `${line.padEnd(70)} ${span.service.padEnd(17)} at ${(startMs(span) - start).toFixed(0).padStart(4)} ms, ${took.toFixed(1)} ms`,
            ...below(span.spanId, depth + 1),
          ]
        })
    return below(undefined, 0).join('\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

const startMs = ({ startTimeUnixNano }: ReceivedSpan) => Number(startTimeUnixNano) / 1e6

function readSpans({ resourceSpans }: OtlpBody): readonly ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(readAttributes(resource.attributes)['service.name'])
    return scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({ ...span, attributes: readAttributes(span.attributes), service, failed: span.status.code === 2 })),
    )
  })
}

function readAttributes(attributes: OtlpAttributes): Readonly<Record<string, string | number | boolean>> {
  const entries = attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => {
    const number = intValue === undefined ? doubleValue : Number(intValue)
    return [key, stringValue ?? number ?? boolValue ?? ''] as const
  })
  return Object.fromEntries(entries)
}
