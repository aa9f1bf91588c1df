import { ERRORS } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { AgentDefinition } from '../../domain/agents/definition.ts'
import { MAX_TOOL_CALLS } from '../../domain/agents/definition.ts'
import { EARLIER_MARKS_NOTICE, escapeEarlierMarks } from '../../domain/agents/earlier-marks.ts'
import {
  CHUNKS_NOTICE,
  CheckedPieces,
  chunksAsText,
  type ShownChunk,
  ShownChunks,
  searchToolResult,
} from '../../domain/agents/found-chunks.ts'
import { OUTSIDE_TOOLS_NOTICE } from '../../domain/agents/outside-tools.ts'
import type { Citation, RunEvent, RunOutcome, RunStep } from '../../domain/agents/run.ts'
import { type SearchTool, searchArguments, toolDefinition, toSearchTools } from '../../domain/agents/search-tools.ts'
import type { Model } from '../../domain/catalog.ts'
import type { ToolCall } from '../../domain/chat/chat-response.ts'
import { findEarlierQuestion, isFollowUp, readSmallTalk } from '../../domain/chat/question.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { ChunkQuery, FoundChunk, FoundChunks } from '../../ports/knowledge.ts'
import type { CallContext, With } from '../deps.ts'
import { type McpTools, type OutsideTool, openMcpTools } from './mcp-tools.ts'
import type { ModelReply } from './model-step.ts'
import { judgeReply, MAX_SCHEMA_TRIES, schemaFailed, schemaFaults, schemaOrder } from './schema-replies.ts'
import { type Tool, type ToolResult, toolFailure } from './tools.ts'

/** Most tool calls of one step that run at the same time. */
const MAX_AT_ONCE = 4
/** Most chunks in all for a model that cannot call tools. */
const CHUNKS_WITHOUT_TOOLS = 8
/**
 * Most characters of a message that are used as the query of a search. Embedding models read about 512 tokens, and a
 * question stands at the end of its message, so the end is used.
 */
const MAX_QUESTION_CHARACTERS = 1_000

interface LoopInput {
  readonly agent: AgentDefinition
  readonly model: Model
  /** Messages of the chat protocol: the conversation, with the question last. */
  readonly messages: readonly ProtocolObject[]
  /** The mark of the first chunk. The next `MARKS_OF_RUN` marks are reserved for the run. */
  readonly firstMark: number
  /** The caller is the run's and has the scopes to search and to call models; `runHoldId` is set. */
  readonly context: CallContext & { readonly runHoldId: string }
  readonly emit: (event: RunEvent) => void
  /** The calls that cost money or have effects. */
  readonly calls: LoopCalls
}

/**
 * The calls of a loop. Each has a unique name. When the loop runs again and gets the same results, its calls have the
 * same names.
 */
interface LoopCalls {
  /** Calls the model, or returns the reply that an earlier attempt stored. */
  callModel(name: string, request: ProtocolObject, progress: ModelCallProgress): Promise<ModelReply>
  search(name: string, query: ChunkQuery): Promise<FoundChunks>
  /** Calls an outside tool, which may have effects. */
  tool(name: string, call: () => Promise<string>): Promise<string>
}

/** How a call of the model reports its progress. */
interface ModelCallProgress {
  /** The number of the call within the run, from 1. */
  readonly number: number
  /** Called each time the model is called. Returns the function that receives the text of the reply as it arrives. */
  readonly start: () => (text: string) => void
}

/**
 * Runs an agent from its question to its reply. The model is called again with the results of its tool calls until it
 * replies or reaches a limit.
 * @throws {KisError} `run_limit_exceeded`: the model did not reply within the agent's `maxSteps`.
 * @throws {KisError} `output_schema_failed`: no reply matched the schema.
 * @throws {KisError} any error of a model call or search that the model did not cause.
 */
export async function runAgentLoop(deps: With<'principals'>, input: LoopInput): Promise<RunOutcome> {
  return new AgentLoop(deps, input).run()
}

class AgentLoop {
  readonly #deps: With<'principals'>
  readonly #input: LoopInput
  readonly #calls: LoopCalls
  readonly #shown: ShownChunks
  readonly #messages: ProtocolObject[]
  #searchTools: readonly SearchTool[] = []
  #lostCollections = 0
  #outside: McpTools | undefined
  #tools: readonly Tool[] = []
  #steps = 0
  #toolCalls = 0
  #searches = 0
  #outsideCalls = 0

  constructor(deps: With<'principals'>, input: LoopInput) {
    this.#deps = deps
    this.#input = input
    this.#shown = new ShownChunks(input.firstMark)
    this.#messages = [...escapeEarlierMarks(input.messages)]
    this.#calls = input.calls
  }

  async run(): Promise<RunOutcome> {
    const { agent, model } = this.#input
    const context = await this.#now()
    const collections = await this.#deps.knowledge.describe(agent.collectionIds, context)
    this.#searchTools = toSearchTools(collections)
    this.#lostCollections = agent.collectionIds.length - collections.length
    const callsTools = model.supports.has('tools')
    const names = new Set(this.#searchTools.map(({ name }) => name))
    await using outside = callsTools ? await openMcpTools(this.#deps, agent, context, names) : undefined
    this.#outside = outside
    this.#tools = [...this.#searchTools.map((tool) => this.#searching(tool)), ...(outside?.tools ?? []).map((tool) => this.#named(tool))]
    if (!callsTools) await this.#searchForTheModel()
    const schema = agent.responseSchema
    this.#messages.unshift({ role: 'system', content: this.#system(callsTools, schema) })

    for (let tries = 1; ; tries++) {
      const reply = await this.#runUntilReply(callsTools, schema)
      const outcome = this.#outcome(reply)
      if (outcome.isRefusal || !schema) return outcome
      const judged = await judgeReply(this.#deps, context, schema, outcome.text)
      if ('value' in judged) return { ...outcome, output: judged.value }
      if (tries === MAX_SCHEMA_TRIES) throw schemaFailed(judged.faults, reply.text)
      this.#messages.push(reply.message, schemaFaults(judged.faults))
    }
  }

  /**
   * Returns the context with the caller's current rules, which may have changed since the run started.
   * @throws {KisError} the caller may no longer run this.
   */
  async #now(): Promise<LoopInput['context']> {
    const { context } = this.#input
    return { ...context, caller: await this.#deps.principals.recent(context.caller) }
  }

  /** Calls the model until it replies without calling a tool. */
  async #runUntilReply(callsTools: boolean, schema: ProtocolObject | null): Promise<ModelReply> {
    const { maxSteps } = this.#input.agent
    for (;;) {
      if (this.#steps === maxSteps) throw new KisError('run_limit_exceeded', `The run found no answer in ${maxSteps} steps.`)
      const mayCall = callsTools && this.#tools.length > 0 && this.#toolCalls < MAX_TOOL_CALLS
      // In the last step the model has to reply from what it found.
      const reply = await this.#callModel(mayCall ? (this.#steps + 1 < maxSteps ? 'auto' : 'none') : null, schema)
      if (reply.toolCalls.length === 0) return reply
      this.#messages.push(reply.message, ...(await this.#callTools(reply.toolCalls)))
    }
  }

  async #callModel(toolChoice: 'auto' | 'none' | null, schema: ProtocolObject | null): Promise<ModelReply> {
    const { agent, model, emit } = this.#input
    this.#steps += 1
    const number = this.#steps
    emit({ type: 'step_started', number })
    const request = {
      model: model.id,
      messages: [...this.#messages],
      ...agent.sampling,
      ...(toolChoice && { tools: this.#tools.map(({ definition }) => definition), tool_choice: toolChoice }),
      ...(schema && schemaOrder(model, schema).fields),
    }
    const emitText = (text: string) => {
      if (text !== '') emit({ type: 'text_delta', number, text })
    }
    const heard: { pieces?: CheckedPieces } = {}
    const start = () => {
      const pieces = new CheckedPieces(this.#shown)
      heard.pieces = pieces
      return (text: string) => emitText(pieces.add(text))
    }
    const reply = await this.#calls.callModel(`model_${number}`, request, { number, start })
    // A stored reply arrives whole: `start` was not called.
    if (!heard.pieces) start()(reply.text)
    emitText(heard.pieces!.end())
    const { modelId, quantities, cost } = reply
    this.#note({ kind: 'model', number, modelId, quantities, cost })
    return reply
  }

  /** Returns the results in the order of the calls, whichever call ends first. */
  async #callTools(calls: readonly ToolCall[]): Promise<readonly ProtocolObject[]> {
    const results: ProtocolObject[] = []
    for (let from = 0; from < calls.length; from += MAX_AT_ONCE) {
      const outcomes = await Promise.allSettled(calls.slice(from, from + MAX_AT_ONCE).map((call) => this.#callTool(call)))
      // Chunks are shown in the order of the calls, so that a chunk has the same mark whichever search ends first.
      for (const [i, outcome] of outcomes.entries()) {
        // The other calls have ended and were charged.
        if (outcome.status === 'rejected') throw outcome.reason
        const found = outcome.value
        const content = typeof found === 'string' ? found : searchToolResult(this.#shown.show(found))
        results.push({ role: 'tool', tool_call_id: calls[from + i]!.id, content })
      }
    }
    return results
  }

  /** Calls a tool. Returns the error as the result when the model caused it, and throws any other error. */
  async #callTool({ id, name, arguments: text }: ToolCall): Promise<ToolResult> {
    this.#input.emit({ type: 'tool_call', number: this.#steps, id, name, arguments: text })
    this.#toolCalls += 1
    if (this.#toolCalls > MAX_TOOL_CALLS) return toolFailure('No more calls are allowed. Answer from what was found.')
    const tool = this.#tools.find((one) => one.name === name)
    if (!tool) return toolFailure(`There is no tool \`${name}\`.`)
    try {
      return await tool.call(text)
    } catch (error) {
      if (error instanceof KisError && isModelsFault(error)) return toolFailure(error.message)
      throw error
    }
  }

  #searching(tool: SearchTool): Tool {
    return {
      name: tool.name,
      definition: toolDefinition(tool),
      call: async (args) => {
        const { query, limit, filter } = searchArguments(args)
        return this.#search(tool, query, limit, filter)
      },
    }
  }

  #named(tool: OutsideTool): Tool {
    return {
      ...tool,
      call: (args) => {
        this.#outsideCalls += 1
        return this.#calls.tool(`tool_${this.#outsideCalls}`, () => tool.call(args))
      },
    }
  }

  async #search({ collection }: SearchTool, query: string, limit: number, filter: unknown): Promise<readonly FoundChunk[]> {
    const { emit } = this.#input
    const number = this.#steps
    this.#searches += 1
    const chunkQuery = { collectionId: collection.id, query, limit, filter }
    const { passages: chunks, cost } = await this.#calls.search(`search_${this.#searches}`, chunkQuery)
    const hits = chunks.map(({ chunkId, score, fileName, pageStart }) => ({ chunkId, score, fileName, pageStart }))
    emit({ type: 'search', number, collectionId: collection.id, query, hits })
    this.#note({ kind: 'search', number, collectionId: collection.id, query, hits: hits.length, cost })
    return chunks
  }

  /** Searches every collection for the question and puts the chunks before it, for a model that cannot call tools. */
  async #searchForTheModel(): Promise<void> {
    const last = this.#messages.findLastIndex(({ role }) => role === 'user')
    const [question = '', ...earlier] = this.#messages
      .slice(0, last + 1)
      .flatMap(({ role, content }) => (role === 'user' ? [readText(content).slice(-MAX_QUESTION_CHARACTERS)] : []))
      .toReversed()
    if (question.trim() === '' || this.#searchTools.length === 0 || readSmallTalk(question) !== null) return
    const whole = isFollowUp(question) ? `${findEarlierQuestion(earlier.toReversed())} ${question}`.trim() : question
    const limit = Math.max(1, Math.floor(CHUNKS_WITHOUT_TOOLS / this.#searchTools.length))
    const found: ShownChunk[] = []
    for (const tool of this.#searchTools)
      found.push(...this.#shown.show(await this.#search(tool, whole.slice(-MAX_QUESTION_CHARACTERS), limit, null)))
    if (found.length > 0) this.#messages.splice(last, 0, { role: 'user', content: chunksAsText(found) })
  }

  #system(callsTools: boolean, schema: ProtocolObject | null): string {
    const { agent, model } = this.#input
    const order = schema && schemaOrder(model, schema).order
    return [
      ...(agent.instructions ? [agent.instructions] : []),
      ...(this.#searchTools.length > 0 && callsTools
        ? [
            'Search the collections when the question may be answered by them. Answer in the language of the question, from the passages that you find, and say so when they do not answer it.',
          ]
        : []),
      ...(this.#searchTools.length > 0 ? [CHUNKS_NOTICE] : []),
      ...(this.#input.firstMark > 1 ? [EARLIER_MARKS_NOTICE] : []),
      ...(this.#lostCollections > 0
        ? [
            `Collections that you were given and that were deleted since: ${this.#lostCollections}. Begin your answer by saying that, in the language of the question.`,
          ]
        : []),
      ...(this.#outside?.tools.length ? [OUTSIDE_TOOLS_NOTICE] : []),
      ...(this.#outside?.away.length ? [`These services cannot be used at the moment: ${this.#outside.away.join(', ')}.`] : []),
      ...(order === null ? [] : [order]),
    ].join('\n\n')
  }

  #outcome({ text, refusal, finishReason }: ModelReply): RunOutcome {
    const checked = this.#shown.citedBy(refusal ?? text)
    return {
      text: checked.text,
      isRefusal: refusal !== null,
      finishReason,
      citations: checked.cited.map(toCitation),
      nextMark: this.#shown.nextMark,
    }
  }

  #note(step: RunStep): void {
    this.#input.emit({ type: 'usage', step })
  }
}

function toCitation({ number, chunk: { score: _score, headingPath: _path, ...position } }: ShownChunk): Citation {
  return { mark: number, ...position }
}

/** Reports whether the model caused the error and can try other arguments, or the collection was deleted meanwhile. */
function isModelsFault({ code }: KisError): boolean {
  return ERRORS[code].status === 400 || code === 'not_found'
}

function readText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('\n')
}
