import { KisError } from '../../../common/errors.ts'
import { escapeUntrustedText } from '../../../common/untrusted-text.ts'
import { MARKS_OF_RUN } from '../../domain/agents/earlier-marks.ts'
import { chunksAsText, ShownChunks } from '../../domain/agents/found-chunks.ts'
import { MAX_AUDIO_BYTES } from '../../domain/transcription/transcription-request.ts'
import type { Task } from '../../domain/workflows/definition.ts'
import { MAX_TEXT_CHARACTERS, type Scope, tooLong } from '../../domain/workflows/expression.ts'
import { jsonLength, RenderBudget } from '../../domain/workflows/render-budget.ts'
import { renderText, renderValue } from '../../domain/workflows/template.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { runAgentLoop } from '../agents/agent-loop.ts'
import { admitModel, findVersion } from '../agents/agents.ts'
import { toModelReply } from '../agents/model-step.ts'
import { judgeReply, MAX_SCHEMA_TRIES, meeting, schemaFailed, schemaFaults, schemaOrder } from '../agents/schema-replies.ts'
import { createChatCompletion } from '../calls/create-chat-completion.ts'
import type { CallContext, CallDeps } from '../deps.ts'
import type { RunSteps } from '../runs/run-steps.ts'
import { createTranscription } from '../transcription/create-transcription.ts'

const DEFAULT_CHUNKS = 8

/** What the tasks of one run share. */
export interface TaskContext {
  readonly deps: CallDeps
  readonly context: CallContext & { readonly runHoldId: string }
  readonly steps: RunSteps
  /** The pinned agents, by the agent ids that the nodes use. */
  readonly agents: Readonly<Record<string, PinnedAgent>>
  /** By node id, the number after which the marks of the node's chunks start. */
  readonly marksBefore: ReadonlyMap<string, number>
}

/** The version of an agent that a run uses from its start to its end. */
export interface PinnedAgent {
  readonly agentId: string
  readonly version: number
}

/**
 * Does one task and returns its output. `path` names the task in the run.
 * @throws {KisError} `output_schema_failed`: the output does not match the task's schema.
 * @throws {KisError} the error of a call.
 * @throws {RestsOnSkipped} the task uses the output of a skipped node.
 */
export async function doTask(run: TaskContext, task: Task, scope: Scope, path: string): Promise<unknown> {
  const output = await produceOutput(run, task, scope, path)
  if (!task.response_schema || task.type === 'chat' || task.type === 'agent' || task.type === 'template') return output
  return meeting(run.deps, run.context, task.response_schema, output)
}

/**
 * Returns the first mark of a task. Marks differ between the tasks of a run, because one text may contain those of
 * several.
 */
function firstMarkOf({ marksBefore }: TaskContext, path: string): number {
  const [nodeId = '', item = '0'] = path.split('/')
  return marksBefore.get(nodeId)! + Number(item) * MARKS_OF_RUN + 1
}

function produceOutput(run: TaskContext, task: Task, scope: Scope, path: string): Promise<unknown> | unknown {
  switch (task.type) {
    case 'chat':
      return chat(run, task, scope, path)
    case 'agent':
      return runAgentTask(run, task, scope, path)
    case 'search':
      return search(run, task, scope, path)
    case 'transcribe':
      return transcribe(run, task, scope, path)
    case 'template':
      return template(run, task, scope)
  }
}

async function template({ deps, context }: TaskContext, task: Extract<Task, { type: 'template' }>, scope: Scope) {
  const text = renderText(task.template, scope)
  if (!task.response_schema) return { text }
  const judged = await judgeReply(deps, context, task.response_schema, text)
  if ('faults' in judged) throw schemaFailed(judged.faults, text)
  return { text, output: judged.value }
}

/** Calls the model, and again with the faults while its reply does not match the schema. */
async function chat({ deps, context, steps }: TaskContext, task: Extract<Task, { type: 'chat' }>, scope: Scope, path: string) {
  const { temperature, top_p, max_output_tokens } = task
  const model = admitModel(deps, context, task.model, 'model')
  const schema = task.response_schema
  const budget = new RenderBudget()
  const messages: ProtocolObject[] = task.messages.map(({ role, content }) => ({ role, content: renderText(content, scope, budget) }))
  const order = schema && schemaOrder(model, schema)
  if (order?.order) messages.unshift({ role: 'system', content: order.order })
  for (let tries = 1; ; tries++) {
    const request = {
      model: model.id,
      messages: [...messages],
      ...(temperature !== undefined && { temperature }),
      ...(top_p !== undefined && { top_p }),
      ...(max_output_tokens !== undefined && { max_completion_tokens: max_output_tokens }),
      ...order?.fields,
    }
    const completion = await steps.once(`${path}/${tries}`, (stepContext) => createChatCompletion(deps, stepContext, request))
    const reply = toModelReply(completion)
    const result = { text: reply.refusal ?? reply.text, model: completion.modelId }
    if (!schema || reply.refusal !== null) return result
    const judged = await judgeReply(deps, context, schema, reply.text)
    if ('value' in judged) return { ...result, output: judged.value }
    if (tries === MAX_SCHEMA_TRIES) throw schemaFailed(judged.faults, reply.text)
    messages.push(reply.message, schemaFaults(judged.faults))
  }
}

async function runAgentTask(run: TaskContext, task: Extract<Task, { type: 'agent' }>, scope: Scope, path: string) {
  const { deps, context, steps, agents } = run
  const pinned = agents[task.agent_id]
  const version = pinned && (await findVersion(deps, context.caller.organizationId, pinned.agentId, pinned.version))
  if (!version) throw new KisError('not_found', `No agent with id \`${task.agent_id}\` in this organization.`)
  const agent = task.response_schema ? { ...version, responseSchema: task.response_schema } : version
  const model = admitModel(deps, context, agent.modelId, 'model')
  const messages = [{ role: 'user', content: renderText(task.input, scope) }]
  const { text, output, citations } = await runAgentLoop(deps, {
    agent,
    model,
    messages,
    firstMark: firstMarkOf(run, path),
    context,
    emit: () => undefined,
    calls: {
      callModel: async (name, request) =>
        toModelReply(await steps.once(`${path}/${name}`, (callContext) => createChatCompletion(deps, callContext, request))),
      search: (name, query) => steps.search(`${path}/${name}`, query),
      tool: (name, call) => steps.recorded(`${path}/${name}`, call),
    },
  })
  const cited = citations.map((citation) => ({
    mark: citation.mark,
    chunk_id: citation.chunkId,
    document_id: citation.documentId,
    file_id: citation.fileId,
    file_name: citation.fileName,
    text: citation.text,
    page_start: citation.pageStart,
    page_end: citation.pageEnd,
  }))
  return { text, ...(output !== undefined && { output }), citations: cited }
}

async function search(run: TaskContext, task: Extract<Task, { type: 'search' }>, scope: Scope, path: string) {
  const { steps } = run
  const query = renderText(task.query, scope)
  const filter = task.filter === undefined ? null : renderValue(task.filter, scope)
  if (jsonLength(filter, MAX_TEXT_CHARACTERS) > MAX_TEXT_CHARACTERS) throw tooLong()
  const limit = task.limit ?? DEFAULT_CHUNKS
  const { passages: chunks } = await steps.search(path, { collectionId: task.collection_id, query, limit, filter })
  const shown = new ShownChunks(firstMarkOf(run, path)).show(chunks)
  // The next node after a search in a workflow is nearly always a model.
  const results = chunks.map((chunk) => ({
    chunk_id: chunk.chunkId,
    document_id: chunk.documentId,
    file_id: chunk.fileId,
    file_name: escapeUntrustedText(chunk.fileName),
    text: escapeUntrustedText(chunk.text),
    heading_path: chunk.headingPath.map(escapeUntrustedText),
    page_start: chunk.pageStart,
    page_end: chunk.pageEnd,
    score: chunk.score,
  }))
  return { results, text: chunksAsText(shown), count: results.length }
}

async function transcribe({ deps, steps }: TaskContext, task: Extract<Task, { type: 'transcribe' }>, scope: Scope, path: string) {
  const fileId = renderText(task.file_id, scope)
  const { text, audioMilliseconds } = await steps.once(path, async (stepContext) => {
    const bytes = await deps.knowledge.readFile(fileId, 'file_id', MAX_AUDIO_BYTES, stepContext)
    return createTranscription(deps, stepContext, {
      model: task.model,
      contentBase64: Buffer.from(bytes).toString('base64'),
      ...(task.language !== undefined && { language: renderText(task.language, scope) }),
      ...(task.prompt !== undefined && { prompt: renderText(task.prompt, scope) }),
    })
  })
  return { text, seconds: audioMilliseconds / 1_000 }
}
