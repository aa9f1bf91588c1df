/** What a test asks for, in no client's words. */
export interface Prompt {
  readonly model: string
  readonly text: string
  readonly image?: { readonly mediaType: 'image/png'; readonly base64: string }
  /** Functions without a description that take a `city`. */
  readonly tools?: readonly string[]
  /** A strict JSON schema that the answer must keep to. */
  readonly schema?: object
  /** Results of the calls that an earlier answer has made, one each. */
  readonly after?: { readonly calls: readonly Called[]; readonly result: string }
}

export interface Called {
  readonly id: string
  readonly name: string
  readonly arguments: unknown
}

/** What a client understood of an answer. */
export interface Understood {
  readonly text: string
  readonly calls: readonly Called[]
  /** Why the answer ended; the words of all protocols are brought to these. */
  readonly ended: 'stop' | 'tools' | string
  readonly usage: { readonly prompt: number; readonly cached: number; readonly completion: number } | null
}

/** What a client threw, with the text that it had read before. */
export interface Thrown {
  /** Of the HTTP answer; null for a failure within a stream. */
  readonly status: number | null
  /** The machine's word for it: `code` of the chat protocol, `type` of others. */
  readonly word: string | null
  readonly requestId: string | null
  readonly text: string
}

/** An official client of one protocol, driving the service as its users do. */
export interface ConformanceClient {
  readonly name: string
  complete(prompt: Prompt): Promise<Understood>
  /** By the client's own helper, which throws on chunks that it cannot put together. */
  stream(prompt: Prompt): Promise<Understood>
  /** What a failing request throws. */
  failure(prompt: Prompt, isStream: boolean): Promise<Thrown>
  /** Begins a stream and leaves after the first text. */
  disconnect(prompt: Prompt): Promise<void>
  close(): Promise<void>
}

export const PARAMETERS = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
} as const
