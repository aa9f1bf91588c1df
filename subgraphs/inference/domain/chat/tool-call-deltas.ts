import type { ProtocolObject } from '../../ports/engines.ts'
import {
  asObject,
  checkCount,
  isIndex,
  isText,
  MAX_CALLS_OF_CHOICE,
  type ResponseNames,
  toCallId,
  toCallType,
} from './complete-response.ts'

interface OpenCall {
  readonly index: number
  /** The engine's id. Null: the engine sent none. */
  readonly id: string | null
  isNamed: boolean
}

/**
 * Normalizes the deltas of one choice's tool calls. The first delta of each call has id, type and name; all others have
 * only more of the arguments; a call's index never changes. Some engines send the same index for every call, or none,
 * or repeat id and name with each delta, which clients would join into one.
 */
export class ToolCallDeltas {
  readonly #names: ResponseNames
  readonly #calls: OpenCall[] = []
  /** The call that an index of the engine refers to. */
  readonly #byEngineIndex = new Map<unknown, OpenCall>()

  constructor(names: ResponseNames) {
    this.#names = names
  }

  get any(): boolean {
    return this.#calls.length > 0
  }

  write(piece: ProtocolObject): ProtocolObject {
    const id = isText(piece.id) ? piece.id : null
    const { name, ...rest } = asObject(piece.function)
    const open = this.#openCall(piece.index, id, isText(name))
    if (!open) return this.#start(piece, id)
    const { id: _id, type: _type, ...more } = piece
    const isFirstName = isText(name) && !open.isNamed
    open.isNamed ||= isFirstName
    return { ...more, index: open.index, ...(piece.function !== undefined && { function: isFirstName ? { name, ...rest } : rest }) }
  }

  #openCall(engineIndex: unknown, id: string | null, isNamed: boolean): OpenCall | undefined {
    const open = isIndex(engineIndex)
      ? this.#byEngineIndex.get(engineIndex)
      : (this.#calls.find((call) => id !== null && call.id === id) ?? (isNamed ? undefined : this.#calls.at(-1)))
    // A different id alone does not mean another call: some engines generate an id for every delta.
    const isOther = open !== undefined && isNamed && open.isNamed && id !== null && id !== open.id
    return isOther ? undefined : open
  }

  #start(piece: ProtocolObject, id: string | null): ProtocolObject {
    checkCount(this.#calls.length + 1, MAX_CALLS_OF_CHOICE, 'tool calls')
    const { index: engineIndex } = piece
    const { name, arguments: text = '', ...rest } = asObject(piece.function)
    const isFree = isIndex(engineIndex) && !this.#calls.some(({ index }) => index === engineIndex)
    const index = isFree ? (engineIndex as number) : Math.max(-1, ...this.#calls.map((call) => call.index)) + 1
    const call: OpenCall = { index, id, isNamed: isText(name) }
    this.#calls.push(call)
    this.#byEngineIndex.set(engineIndex, call)
    const type = toCallType(piece.type)
    const ours = { ...piece, index, id: toCallId(id, this.#names), type }
    return type === 'function' ? { ...ours, function: { ...(isText(name) && { name }), arguments: text, ...rest } } : ours
  }
}
