import { setImmediate as nextTick } from 'node:timers/promises'
import { isAbort, KisError } from '../../../common/errors.ts'
import type { StoredValue } from '../../../common/ports/document-store.ts'
import { MARKS_OF_RUN } from '../../domain/agents/earlier-marks.ts'
import { holds } from '../../domain/workflows/condition.ts'
import type { BranchTask, MapTask, WorkflowDefinition, WorkflowNode } from '../../domain/workflows/definition.ts'
import { RestsOnSkipped, type Scope } from '../../domain/workflows/expression.ts'
import { listWaits, readGates } from '../../domain/workflows/graph.ts'
import { jsonLength, RenderBudget } from '../../domain/workflows/render-budget.ts'
import type { NodeRun, WorkflowError, WorkflowEvent } from '../../domain/workflows/run.ts'
import { renderValue } from '../../domain/workflows/template.ts'
import { meeting } from '../agents/schema-replies.ts'
import type { ActiveRun, RunEnd } from '../runs/run-kind.ts'
import { LeftToOthers } from '../runs/run-steps.ts'
import type { WorkflowRunRecord } from '../tables.ts'
import { doTask, type TaskContext } from './node-task.ts'

/** Most nodes of one run that run at the same time. */
const MAX_AT_ONCE = 4
const DEFAULT_ITEMS_AT_ONCE = 4
const MAX_ITEMS = 100
/** Most characters of the JSON of a node's or a run's output: 50 of them fit one document of the store. */
const MAX_OUTPUT_CHARACTERS = 65_536

interface Options {
  readonly record: WorkflowRunRecord
  readonly definition: WorkflowDefinition
  readonly tasks: TaskContext
  readonly activeRun: Pick<ActiveRun<WorkflowEvent>, 'writer' | 'write' | 'gotFurther'>
}

/** Runs the nodes of one run from the state in its record, and records each step. */
export class WorkflowRun {
  readonly #record: WorkflowRunRecord
  readonly #definition: WorkflowDefinition
  readonly #tasks: TaskContext
  readonly #run: Options['activeRun']
  readonly #nodes: Map<string, NodeRun>
  readonly #inFlight = new Map<string, Promise<void>>()
  #failure: WorkflowError | null = null
  /** An error after which the run cannot continue here, for example the loss of the store. */
  #defect: { readonly error: unknown } | null = null
  /** Names of the events that earlier processes of the run wrote. */
  readonly #writtenBefore: ReadonlySet<string>

  constructor({ record, definition, tasks, activeRun }: Options) {
    this.#record = record
    this.#definition = definition
    this.#tasks = tasks
    this.#run = activeRun
    this.#writtenBefore = new Set(activeRun.writer.before.map(nameEvent))
    this.#nodes = new Map(Object.entries(record.nodes))
  }

  /**
   * Runs the nodes until the run ends. When it throws, no node is in progress any more.
   * @throws the reason of the signal, when it is aborted.
   * @throws {LeftToOthers} another process has the run.
   * @throws the error of the store.
   */
  async run(): Promise<RunEnd> {
    this.#reportMissing()
    const waits = listWaits(this.#definition)
    const failed = [...this.#nodes].find(([, { state }]) => state === 'failed')
    if (failed) this.#failure = { ...failed[1].error!, nodeId: failed[0] }
    for (;;) {
      const isOver = this.#failure !== null || this.#defect !== null || this.#signal.aborted
      const ready = isOver ? [] : this.#definition.nodes.filter((node) => this.#isReady(node, waits.get(node.id)!))
      for (const node of ready.slice(0, MAX_AT_ONCE - this.#inFlight.size)) this.#start(node)
      if (this.#inFlight.size === 0) break
      await Promise.race(this.#inFlight.values())
    }
    this.#signal.throwIfAborted()
    if (this.#defect) throw this.#defect.error
    await this.#run.writer.flushed()
    return this.#failure ? { status: 'failed', error: this.#failure } : this.#completed()
  }

  get #signal(): AbortSignal {
    return this.#tasks.context.signal
  }

  #isReady({ id }: WorkflowNode, waits: ReadonlySet<string>): boolean {
    const isDue = ['pending', 'running'].includes(this.#nodes.get(id)!.state) && !this.#inFlight.has(id)
    return isDue && [...waits].every((other) => ['done', 'skipped'].includes(this.#nodes.get(other)!.state))
  }

  /** Starts a node. If it fails, the other nodes in progress still run to their end. */
  #start(node: WorkflowNode): void {
    const work = this.#do(node)
      .catch(async (error) => {
        if (this.#signal.aborted) return
        if (error instanceof LeftToOthers) throw error
        const failure = this.#toWorkflowError(error, node.id)
        await this.#end(node.id, { state: 'failed', output: null, error: { code: failure.code, message: failure.message } })
        this.#failure ??= failure
      })
      .catch((error) => {
        this.#defect ??= { error }
      })
      .finally(() => this.#inFlight.delete(node.id))
    this.#inFlight.set(node.id, work)
  }

  async #do(node: WorkflowNode): Promise<void> {
    const { clock } = this.#tasks.deps
    if (readGates(node).some(({ nodeId, chosen }) => !this.#isOpen(nodeId, chosen))) return this.#skip(node.id)
    const before = this.#nodes.get(node.id)!
    if (before.state === 'pending') await this.#write(node.id, { ...before, state: 'running', startedAt: clock.now() })
    this.#reportOnce({ type: 'node_started', nodeId: node.id })
    let output: unknown
    try {
      output = await this.#produceOutput(node)
    } catch (error) {
      if (error instanceof RestsOnSkipped) return this.#skip(node.id)
      throw error
    }
    await this.#end(node.id, { state: 'done', output: checkedJson(output), error: null })
  }

  #produceOutput(node: WorkflowNode): Promise<unknown> | unknown {
    const scope = this.#scope()
    switch (node.type) {
      case 'branch':
        return this.#checked(node, { case: chosenBy(node, scope) })
      case 'map':
        return this.#map(node, scope)
      default:
        return doTask(this.#tasks, node, scope, node.id)
    }
  }

  async #map(node: MapTask & { readonly id: string }, scope: Scope): Promise<unknown> {
    const list = renderValue(node.over, scope)
    if (!Array.isArray(list)) throw new KisError('invalid_request', 'The `over` of a map is not a list.')
    if (list.length > MAX_ITEMS)
      throw new KisError('run_limit_exceeded', `A map takes at most ${MAX_ITEMS} items; the list has ${list.length}.`)
    const items = new Array<unknown>(list.length)
    let next = 0
    let isFailed = false
    const worker = async () => {
      while (next < list.length && !isFailed) {
        const index = next++
        try {
          // Templates never wait, so without this pause they would block other work.
          await nextTick()
          items[index] = await doTask(this.#tasks, node.node, { ...scope, item: list[index], index }, `${node.id}/${index}`)
        } catch (error) {
          isFailed = true
          throw error
        }
        this.#reportOnce({ type: 'item_done', nodeId: node.id, index })
      }
    }
    const workers = Array.from({ length: node.at_once ?? DEFAULT_ITEMS_AT_ONCE }, worker)
    await Promise.allSettled(workers)
    await Promise.all(workers)
    return this.#checked(node, { items, count: items.length })
  }

  #checked({ response_schema }: BranchTask | MapTask, output: unknown): Promise<unknown> | unknown {
    const { deps, context } = this.#tasks
    return response_schema ? meeting(deps, context, response_schema, output) : output
  }

  async #skip(nodeId: string): Promise<void> {
    await this.#end(nodeId, { state: 'skipped', output: null, error: null })
  }

  async #end(nodeId: string, { state, output, error }: Pick<NodeRun, 'output' | 'error'> & { state: 'done' | 'failed' | 'skipped' }) {
    const cost = this.#tasks.steps.getCost(nodeId)
    const node = { ...this.#nodes.get(nodeId)!, state, output, error, cost: String(cost), endedAt: this.#tasks.deps.clock.now() }
    // The node has ended, so it is not the cause if a process dies later.
    await this.#write(nodeId, node, this.#run.gotFurther)
    this.#report({ type: 'node_ended', nodeId, state, cost })
  }

  /** @throws {LeftToOthers} another process has the run. */
  async #write(nodeId: string, node: NodeRun, more: Readonly<Record<string, StoredValue>> = {}): Promise<void> {
    await this.#run.write({ [`nodes.${nodeId}`]: node, ...more })
    this.#nodes.set(nodeId, node)
  }

  #report(event: WorkflowEvent): void {
    const { writer } = this.#run
    writer.write(event)
    writer.flushed().catch((error) => {
      this.#defect ??= { error }
    })
  }

  /** Writes an event unless an earlier process wrote it: a process that continues a run repeats some steps. */
  #reportOnce(event: WorkflowEvent): void {
    if (!this.#writtenBefore.has(nameEvent(event))) this.#report(event)
  }

  /** Writes the events that are missing because a process died between writing a node's end and its event. */
  #reportMissing(): void {
    this.#reportOnce({ type: 'run_started', workflowVersion: this.#record.workflowVersion })
    for (const [nodeId, { state, cost }] of this.#nodes)
      if (state !== 'pending' && state !== 'running') this.#reportOnce({ type: 'node_ended', nodeId, state, cost: BigInt(cost) })
  }

  #isOpen(nodeId: string, chosen: string | null): boolean {
    const { state, output } = this.#nodes.get(nodeId)!
    if (state !== 'done') return false
    return chosen === null || (JSON.parse(output!) as { readonly case: string }).case === chosen
  }

  #scope(): Scope {
    const done = [...this.#nodes].filter(([, { state }]) => state === 'done')
    return {
      inputs: JSON.parse(this.#record.inputs),
      nodes: Object.fromEntries(done.map(([id, { output }]) => [id, JSON.parse(output!)])),
    }
  }

  #completed(): RunEnd {
    try {
      const output = renderValue(this.#definition.output, this.#scope())
      checkLength(output)
      return { status: 'completed', output }
    } catch (error) {
      // Everything that the output uses was skipped.
      if (error instanceof RestsOnSkipped) return { status: 'completed', output: null }
      return { status: 'failed', error: this.#toWorkflowError(error, null) }
    }
  }

  #toWorkflowError(error: unknown, nodeId: string | null): WorkflowError {
    if (error instanceof KisError) return { code: error.code, message: error.message, nodeId }
    if (isAbort(error)) return { code: 'service_unavailable', message: 'The call was ended.', nodeId }
    this.#tasks.deps.log.error({ err: error, runId: this.#record._id, nodeId }, 'defect in a run of a workflow')
    return { code: 'internal', message: 'The service failed to run the node.', nodeId }
  }
}

/** Returns for each node that cites chunks how many marks the nodes before it may use. */
export function countMarksBefore({ nodes }: WorkflowDefinition): ReadonlyMap<string, number> {
  const before = new Map<string, number>()
  let next = 0
  for (const node of nodes) {
    const { type } = node.type === 'map' ? node.node : node
    if (type !== 'agent' && type !== 'search') continue
    before.set(node.id, next)
    next += MARKS_OF_RUN * (node.type === 'map' ? MAX_ITEMS : 1)
  }
  return before
}

/** Returns a name that identifies an event within its run. */
function nameEvent(event: WorkflowEvent): string {
  return [event.type, 'nodeId' in event ? event.nodeId : '', 'index' in event ? event.index : ''].join(' ')
}

function chosenBy({ cases, default: otherwise = 'default' }: BranchTask, scope: Scope): string {
  const budget = new RenderBudget()
  return cases.find(({ when }) => holds(when, scope, budget))?.name ?? otherwise
}

function checkedJson(output: unknown): string {
  checkLength(output)
  return JSON.stringify(output)
}

/** Checks the length before the JSON is built, because it may repeat a value thousands of times. */
function checkLength(output: unknown): void {
  if (jsonLength(output, MAX_OUTPUT_CHARACTERS) <= MAX_OUTPUT_CHARACTERS) return
  throw new KisError('run_limit_exceeded', `The output has more than ${MAX_OUTPUT_CHARACTERS} characters as JSON, and no more are stored.`)
}
