import { ERRORS } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import type { AgentDefinition } from '../../domain/agents/definition.ts'
import { MAX_TOOL_CALLS } from '../../domain/agents/definition.ts'
import {
  CheckedPieces,
  PASSAGES_NOTICE,
  passagesAsText,
  type ShownPassage,
  ShownPassages,
  toolAnswer,
} from '../../domain/agents/found-passages.ts'
import { OUTSIDE_TOOLS_NOTICE } from '../../domain/agents/outside-tools.ts'
import type { Citation, RunEvent, RunOutcome, RunStep } from '../../domain/agents/run.ts'
import { type SearchTool, searchArguments, toolDefinition, toSearchTools } from '../../domain/agents/search-tools.ts'
import type { Model } from '../../domain/catalog.ts'
import type { ToolCall } from '../../domain/chat/chat-answer.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { FoundPassages, Passage, PassageQuery } from '../../ports/knowledge.ts'
import type { CallContext, With } from '../deps.ts'
import { type McpTools, type OutsideTool, openMcpTools } from './mcp-tools.ts'
import type { ModelAnswer } from './model-step.ts'
import { judgeAnswer, MAX_SCHEMA_TRIES, schemaFailed, schemaFaults, schemaOrder } from './schema-answers.ts'
import { type Tool, type ToolAnswer, toolFailure } from './tools.ts'

/** Searches of one step at once. */
const MAX_AT_ONCE = 4
/** Passages in all for a model that cannot ask for them. */
const PASSAGES_WITHOUT_TOOLS = 8
/**
 * Of a message that is searched by: models of embeddings read some 512 tokens, and questions stand at the end of what
 * they are about.
 */
const MAX_QUESTION_CHARACTERS = 1_000

export interface LoopInput {
  readonly agent: AgentDefinition
  readonly model: Model
  /** Messages of the chat protocol: the conversation, the question last. */
  readonly messages: readonly ProtocolObject[]
  /** Its caller is the run's, and may search and ask; `runHoldId` is set. */
  readonly context: CallContext & { readonly runHoldId: string }
  readonly emit: (event: RunEvent) => void
  /** What costs money or may act. */
  readonly calls: LoopCalls
}

/**
 * The calls of a loop, each with a name of its own that is the same when the loop is gone through again with the same
 * answers.
 */
export interface LoopCalls {
  /** Asks the model, or gives the answer from before. */
  ask(name: string, request: ProtocolObject, told: AskedStep): Promise<ModelAnswer>
  search(name: string, query: PassageQuery): Promise<FoundPassages>
  /** Calls an outside tool, which may act. */
  tool(name: string, call: () => Promise<string>): Promise<string>
}

/** What is told of a call of the model while it is made. */
export interface AskedStep {
  /** Which call of the model it is, from 1. */
  readonly number: number
  /** Called each time that the model is asked; returns the function that takes the text of the answer as it comes. */
  readonly begin: () => (text: string) => void
}

/**
 * An agent's run from its question to its answer: the model is asked again with what it searched for, until it answers
 * or meets a cap.
 * @throws {KisError}
 */
export async function runAgentLoop(deps: With<'principals'>, input: LoopInput): Promise<RunOutcome> {
  return new AgentLoop(deps, input).run()
}

class AgentLoop {
  readonly #deps: With<'principals'>
  readonly #input: LoopInput
  readonly #calls: LoopCalls
  readonly #shown = new ShownPassages()
  readonly #messages: ProtocolObject[]
  #searchTools: readonly SearchTool[] = []
  #outside: McpTools | undefined
  #tools: readonly Tool[] = []
  #steps = 0
  #toolCalls = 0
  #searches = 0
  #outsideCalls = 0

  constructor(deps: With<'principals'>, input: LoopInput) {
    this.#deps = deps
    this.#input = input
    this.#messages = [...input.messages]
    this.#calls = input.calls
  }

  async run(): Promise<RunOutcome> {
    const { agent, model } = this.#input
    const context = await this.#now()
    const collections = await this.#deps.knowledge.describe(agent.collectionIds, context)
    this.#searchTools = toSearchTools(collections)
    const callsTools = model.supports.has('tools')
    const names = new Set(this.#searchTools.map(({ name }) => name))
    await using outside = callsTools ? await openMcpTools(this.#deps, agent, context, names) : undefined
    this.#outside = outside
    this.#tools = [...this.#searchTools.map((tool) => this.#searching(tool)), ...(outside?.tools ?? []).map((tool) => this.#named(tool))]
    if (!callsTools) await this.#searchForTheModel()
    const schema = agent.responseSchema
    this.#messages.unshift({ role: 'system', content: this.#system(callsTools, schema) })

    for (let tries = 1; ; tries++) {
      const answer = await this.#answer(callsTools, schema)
      const outcome = this.#outcome(answer)
      if (outcome.isRefusal || !schema) return outcome
      const judged = await judgeAnswer(this.#deps, context, schema, outcome.text)
      if ('value' in judged) return { ...outcome, output: judged.value }
      if (tries === MAX_SCHEMA_TRIES) throw schemaFailed(judged.faults, answer.text)
      this.#messages.push(answer.message, schemaFaults(judged.faults))
    }
  }

  /**
   * The run's caller may have been given other rules since the step before.
   * @throws {KisError} the run may not go on.
   */
  async #now(): Promise<LoopInput['context']> {
    const { context } = this.#input
    return { ...context, caller: await this.#deps.principals.recent(context.caller) }
  }

  /** Asks the model until it answers without calling a tool. */
  async #answer(callsTools: boolean, schema: ProtocolObject | null): Promise<ModelAnswer> {
    const { maxSteps } = this.#input.agent
    for (;;) {
      if (this.#steps === maxSteps) throw new KisError('run_limit_exceeded', `The run did not come to an answer in ${maxSteps} steps.`)
      const mayCall = callsTools && this.#tools.length > 0 && this.#toolCalls < MAX_TOOL_CALLS
      // The last step is for an answer from what was found.
      const answer = await this.#ask(mayCall ? (this.#steps + 1 < maxSteps ? 'auto' : 'none') : null, schema)
      if (answer.toolCalls.length === 0) return answer
      this.#messages.push(answer.message, ...(await this.#callTools(answer.toolCalls)))
    }
  }

  async #ask(toolChoice: 'auto' | 'none' | null, schema: ProtocolObject | null): Promise<ModelAnswer> {
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
    const tell = (text: string) => {
      if (text !== '') emit({ type: 'text_delta', number, text })
    }
    const heard: { pieces?: CheckedPieces } = {}
    const begin = () => {
      const pieces = new CheckedPieces(this.#shown)
      heard.pieces = pieces
      return (text: string) => tell(pieces.add(text))
    }
    const answer = await this.#calls.ask(`model_${number}`, request, { number, begin })
    // An answer from before comes whole.
    if (!heard.pieces) begin()(answer.text)
    tell(heard.pieces!.end())
    const { modelId, quantities, cost } = answer
    this.#note({ kind: 'model', number, modelId, quantities, cost })
    return answer
  }

  /** The answers in the order of the calls, whichever is ready first. */
  async #callTools(calls: readonly ToolCall[]): Promise<readonly ProtocolObject[]> {
    const answers: ProtocolObject[] = []
    for (let from = 0; from < calls.length; from += MAX_AT_ONCE) {
      const outcomes = await Promise.allSettled(calls.slice(from, from + MAX_AT_ONCE).map((call) => this.#callTool(call)))
      // Shown in the order of the calls, so that a passage has the same mark whichever search is ready first.
      for (const [i, outcome] of outcomes.entries()) {
        // The others have come to their end, and so to their charge.
        if (outcome.status === 'rejected') throw outcome.reason
        const found = outcome.value
        const content = typeof found === 'string' ? found : toolAnswer(this.#shown.show(found))
        answers.push({ role: 'tool', tool_call_id: calls[from + i]!.id, content })
      }
    }
    return answers
  }

  /** What the model did wrong is told to it; what ends the run is thrown. */
  async #callTool({ id, name, arguments: text }: ToolCall): Promise<ToolAnswer> {
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

  async #search({ collection }: SearchTool, query: string, limit: number, filter: unknown): Promise<readonly Passage[]> {
    const { emit } = this.#input
    const number = this.#steps
    this.#searches += 1
    const asked = { collectionId: collection.id, query, limit, filter }
    const { passages, cost } = await this.#calls.search(`search_${this.#searches}`, asked)
    const hits = passages.map(({ chunkId, score, fileName, pageStart }) => ({ chunkId, score, fileName, pageStart }))
    emit({ type: 'search', number, collectionId: collection.id, query, hits })
    this.#note({ kind: 'search', number, collectionId: collection.id, query, hits: hits.length, cost })
    return passages
  }

  /**
   * For a model that cannot ask: the question is looked for in every collection, and what is found stands before it.
   */
  async #searchForTheModel(): Promise<void> {
    const last = this.#messages.findLastIndex(({ role }) => role === 'user')
    const question = last < 0 ? '' : readText(this.#messages[last]!.content).slice(-MAX_QUESTION_CHARACTERS)
    if (question.trim() === '' || this.#searchTools.length === 0) return
    const limit = Math.max(1, Math.floor(PASSAGES_WITHOUT_TOOLS / this.#searchTools.length))
    const found: ShownPassage[] = []
    for (const tool of this.#searchTools) found.push(...this.#shown.show(await this.#search(tool, question, limit, null)))
    if (found.length > 0) this.#messages.splice(last, 0, { role: 'user', content: passagesAsText(found) })
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
      ...(this.#searchTools.length > 0 ? [PASSAGES_NOTICE] : []),
      ...(this.#outside?.tools.length ? [OUTSIDE_TOOLS_NOTICE] : []),
      ...(this.#outside?.away.length ? [`These services cannot be used at the moment: ${this.#outside.away.join(', ')}.`] : []),
      ...(order === null ? [] : [order]),
    ].join('\n\n')
  }

  #outcome({ text, refusal, finishReason }: ModelAnswer): RunOutcome {
    const checked = this.#shown.citedBy(refusal ?? text)
    return { text: checked.text, isRefusal: refusal !== null, finishReason, citations: checked.cited.map(toCitation) }
  }

  #note(step: RunStep): void {
    this.#input.emit({ type: 'usage', step })
  }
}

function toCitation({ number, passage: { score: _score, headingPath: _path, ...place } }: ShownPassage): Citation {
  return { mark: number, ...place }
}

/** It may try other words or another filter; or the collection has gone meanwhile. */
function isModelsFault({ code }: KisError): boolean {
  return ERRORS[code].status === 400 || code === 'not_found'
}

function readText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('\n')
}
