import { toLatinDigits } from '../../../parts/typed-number.ts'
import type { Agent } from '../base/agents.ts'
import { readSchema } from './schema.ts'

const MAX_NAME = 200
const MAX_INSTRUCTIONS = 32_768
const MAX_COLLECTIONS = 10
export const MAX_SERVERS = 5
const MAX_TOOLS = 50
const MAX_HEADERS = 10
const MAX_COST = 1_000

/** A server of the Model Context Protocol in a form. */
export interface ServerDraft {
  /** Identifies the row in the form only. */
  readonly key: string
  readonly name: string
  readonly url: string
  /** `name: value` in each line. Empty: the server's present headers stay. */
  readonly headers: string
  /** The names of the server's present headers; their values are never shown. */
  readonly kept: readonly string[]
  /** Removes the server's present headers. */
  readonly isWithoutHeaders: boolean
  /** One tool in each line. Empty: all. */
  readonly tools: string
}

/** An agent in a form: the fields' values as they are typed. */
export interface Draft {
  readonly code: string
  readonly name: string
  readonly model: string
  readonly instructions: string
  readonly collectionIds: readonly string[]
  readonly servers: readonly ServerDraft[]
  readonly hasSchema: boolean
  readonly schema: string
  readonly temperature: string
  readonly topP: string
  readonly maxOutputTokens: string
  readonly maxSteps: string
  readonly maxCost: string
}

export const NEW_AGENT: Draft = {
  code: '',
  name: '',
  model: '',
  instructions: '',
  collectionIds: [],
  servers: [],
  hasSchema: false,
  schema: '',
  temperature: '',
  topP: '',
  maxOutputTokens: '',
  maxSteps: '12',
  maxCost: '1',
}

let servers = 0

export function newServer(): ServerDraft {
  return { key: String(++servers), name: '', url: '', headers: '', kept: [], isWithoutHeaders: false, tools: '' }
}

export function draftOf(agent: Agent): Draft {
  const { code, name, model, instructions, collections, mcpServers, responseSchema, temperature, topP, maxOutputTokens } = agent
  return {
    code,
    name,
    model: model?.id ?? '',
    instructions,
    collectionIds: collections.flatMap((collection) => (collection ? [collection.id] : [])),
    servers: mcpServers.map(({ name, url, headerNames, allowedTools }) => ({
      ...newServer(),
      name,
      url,
      kept: headerNames,
      tools: (allowedTools ?? []).join('\n'),
    })),
    hasSchema: responseSchema !== null,
    schema: responseSchema === null ? '' : JSON.stringify(responseSchema, null, 2),
    temperature: temperature?.toString() ?? '',
    topP: topP?.toString() ?? '',
    maxOutputTokens: maxOutputTokens?.toString() ?? '',
    maxSteps: String(agent.maxSteps),
    maxCost: agent.maxCost,
  }
}

type DraftProblem =
  | 'missing'
  | 'nameLong'
  | 'code'
  | 'instructionsLong'
  | 'collectionsMany'
  | 'temperature'
  | 'topP'
  | 'notWhole'
  | 'steps'
  | 'cost'
  | 'serverName'
  | 'serverTwice'
  | 'url'
  | 'headers'
  | 'tools'
  | 'schema'
/** Problems by field: `servers[0].url` is the address of the first server. */
type Problems = Readonly<Record<string, DraftProblem>>

/** Returns the problems by field, before anything is sent. */
export function problemsOf(draft: Draft): Problems {
  const { code, name, model, instructions, collectionIds, temperature, topP, maxOutputTokens, maxSteps, maxCost } = draft
  const length = [...name.trim()].length
  const all: Record<string, DraftProblem | undefined> = {
    name: length === 0 ? 'missing' : length > MAX_NAME ? 'nameLong' : undefined,
    code: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(code.trim()) ? undefined : 'code',
    model: model.trim() === '' ? 'missing' : undefined,
    instructions: [...instructions].length > MAX_INSTRUCTIONS ? 'instructionsLong' : undefined,
    collectionIds: collectionIds.length > MAX_COLLECTIONS ? 'collectionsMany' : undefined,
    responseSchema: draft.hasSchema && 'problem' in readSchema(draft.schema) ? 'schema' : undefined,
    temperature: isBetween(temperature, 0, 2) ? undefined : 'temperature',
    topP: isBetween(topP, 0, 1) ? undefined : 'topP',
    maxOutputTokens: maxOutputTokens.trim() === '' || /^[1-9]\d{0,8}$/.test(toLatinDigits(maxOutputTokens)) ? undefined : 'notWhole',
    maxSteps: /^([1-9]|1[0-2])$/.test(toLatinDigits(maxSteps)) ? undefined : 'steps',
    maxCost: isCost(maxCost) ? undefined : 'cost',
  }
  for (const [index, server] of draft.servers.entries()) {
    const at = `mcpServers[${index}]`
    const isTwice = draft.servers.findIndex((each) => each.name.trim() === server.name.trim()) < index
    all[`${at}.name`] = !/^[A-Za-z0-9_-]{1,16}$/.test(server.name.trim()) ? 'serverName' : isTwice ? 'serverTwice' : undefined
    all[`${at}.url`] = URL.canParse(server.url.trim()) && /^https?:/.test(server.url.trim()) ? undefined : 'url'
    all[`${at}.headers`] = readHeaders(server.headers) ? undefined : 'headers'
    all[`${at}.allowedTools`] = linesOf(server.tools).length > MAX_TOOLS ? 'tools' : undefined
  }
  return Object.fromEntries(Object.entries(all).filter(([, problem]) => problem)) as Problems
}

/** Returns the input of both mutations. The draft must have no problems. */
export function inputOf(draft: Draft) {
  const { temperature, topP, maxOutputTokens, maxSteps, maxCost } = draft
  const numberOf = (typed: string) => (typed.trim() === '' ? null : Number(toLatinDigits(typed)))
  const schema = draft.hasSchema ? readSchema(draft.schema) : null
  return {
    code: draft.code.trim(),
    name: draft.name.trim(),
    model: draft.model.trim(),
    instructions: draft.instructions,
    collectionIds: [...draft.collectionIds],
    mcpServers: draft.servers.map(({ name, url, headers, isWithoutHeaders, tools }) => ({
      name: name.trim(),
      url: url.trim(),
      ...(headers.trim() !== '' ? { headers: readHeaders(headers) } : isWithoutHeaders && { headers: {} }),
      ...(tools.trim() !== '' && { allowedTools: linesOf(tools) }),
    })),
    responseSchema: schema && 'schema' in schema ? schema.schema : null,
    temperature: numberOf(temperature),
    topP: numberOf(topP),
    maxOutputTokens: numberOf(maxOutputTokens),
    maxSteps: Number(toLatinDigits(maxSteps)),
    maxCost: toLatinDigits(maxCost),
  }
}

function isBetween(typed: string, from: number, to: number): boolean {
  if (typed.trim() === '') return true
  const value = toLatinDigits(typed)
  return /^\d+(\.\d+)?$/.test(value) && Number(value) >= from && Number(value) <= to
}

function isCost(typed: string): boolean {
  const value = toLatinDigits(typed)
  return /^\d{1,4}(\.\d{1,9})?$/.test(value) && Number(value) > 0 && Number(value) <= MAX_COST
}

function linesOf(typed: string): string[] {
  return typed
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** Returns the headers; null: a line is no header. */
function readHeaders(typed: string): Readonly<Record<string, string>> | null {
  const pairs = linesOf(typed).map((line) => /^([^\s:]+)\s*:\s*(.+)$/.exec(line))
  if (pairs.length > MAX_HEADERS || pairs.some((pair) => pair === null)) return null
  return Object.fromEntries(pairs.map((pair) => [pair![1]!.toLowerCase(), pair![2]!]))
}
