import type { Client, estypes } from '@elastic/elasticsearch'
import { Unfit } from '../../../common/process/opening.ts'
import { described, readStatus } from './client.ts'
import { ADDED_FIELDS, COLLECTIONS_MAPPING, chunksMapping, EARLIER_FIELDS, type IndexNames } from './indices.ts'

/** The first version with filtered vector search and vectors outside `_source`, which this adapter needs. */
const OLDEST_MAJOR = 9
const PRIVILEGES = ['create_index', 'manage', 'read', 'write']

/**
 * Checks the cluster. Changes nothing.
 * @throws {Unfit} the adapter cannot work on this cluster; the message has every reason
 */
export async function checkStart(client: Client, names: IndexNames): Promise<void> {
  let version: string
  try {
    // Elasticsearch 8 refuses the client's default header, which names version 9.
    version = (await client.info({}, { headers: { accept: 'application/json' } })).version.number
  } catch (error) {
    const isRefused = [401, 403].includes(readStatus(error))
    throw new Unfit([`Elasticsearch ${isRefused ? 'does not accept the credentials' : 'does not respond as such'}: ${described(error)}`])
  }
  if (Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw new Unfit([`Elasticsearch is version ${version}, and ${OLDEST_MAJOR}.0 or newer is needed`])
  const found = await Promise.all([missingPrivileges, wrongMappings, blockedIndices].map((check) => check(client, names)))
  const problems = found.flat().map((problem) => `in Elasticsearch ${problem}`)
  if (problems.length > 0) throw new Unfit(problems)
}

/**
 * Converts the cluster's refusal of an index to `Unfit`.
 * @throws {Unfit} the cluster refuses the index
 */
export function rethrowUnfit(error: unknown): never {
  const { cause = error } = error as Error
  throw new Unfit([(cause as Error).message], { cause })
}

async function missingPrivileges(client: Client, { patterns }: IndexNames): Promise<readonly string[]> {
  try {
    const { index } = await client.security.hasPrivileges({ index: [{ names: [...patterns], privileges: PRIVILEGES }] })
    return patterns.flatMap((pattern) => {
      const missing = Object.entries(index[pattern] ?? {}).flatMap(([privilege, has]) => (has ? [] : [privilege]))
      return missing.length ? [`the user lacks the privileges ${missing.join(', ')} on ${pattern}`] : []
    })
  } catch (error) {
    // A cluster without security does not have this route.
    if ([400, 404, 405].includes(readStatus(error))) return []
    return [`the user's privileges cannot be read: ${described(error)}`]
  }
}

async function wrongMappings(client: Client, names: IndexNames): Promise<readonly string[]> {
  try {
    const indices = await client.indices.getMapping({ index: [...names.patterns], ignore_unavailable: true })
    return Object.entries(indices).flatMap(([index, { mappings }]) => {
      if (index === names.allChunks || names.isChunks(index)) return [`index ${index} exists where an alias belongs`]
      const parts = names.parseIndexName(index)
      const expected = index === names.collections ? COLLECTIONS_MAPPING : parts && chunksMapping(parts.dimensions)
      if (!expected) return []
      const wrong = differences(expected, mappings)
      return wrong.length ? [`index ${index} has a mapping that is not this service's: ${wrong.join(', ')}`] : []
    })
  } catch (error) {
    return readStatus(error) === 404 ? [] : [`the mappings cannot be read: ${described(error)}`]
  }
}

/**
 * Returns the names of differing fields. The server returns more than it was given, and some numbers and booleans as
 * strings.
 */
function differences(expected: estypes.MappingTypeMapping, actual: estypes.MappingTypeMapping): readonly string[] {
  const { properties = {} } = actual
  const differing = Object.entries(expected.properties!).filter(([name, wanted]) => {
    if (name in ADDED_FIELDS && !(name in properties)) return false
    const actual = (properties[name] ?? {}) as Json
    const earlier = (EARLIER_FIELDS as Record<string, Json>)[name]
    return !contains(actual, wanted as Json) && !(earlier && contains(actual, earlier))
  })
  return [...(actual.dynamic === 'strict' ? [] : ['dynamic']), ...differing.map(([name]) => name)]
}

type Json = { readonly [key: string]: unknown }

/** Affects only speed and memory. A rebuild updates it. */
const TUNING = 'index_options'

/** The server omits defaults, so an absent value passes, except the type. */
function contains(actual: Json, wanted: Json): boolean {
  if (wanted.type !== actual.type) return false
  return Object.entries(wanted).every(([key, value]) => {
    const found = actual[key]
    if (found === undefined || key === TUNING) return true
    return typeof value === 'object' ? contains(found as Json, value as Json) : String(found) === String(value)
  })
}

/** Returns read-only indices. An operator makes an index read-only, or the server does when a disk is nearly full. */
async function blockedIndices(client: Client, { patterns }: IndexNames): Promise<readonly string[]> {
  try {
    const settings = await client.indices.getSettings({
      index: [...patterns],
      name: 'index.blocks.*',
      flat_settings: true,
      ignore_unavailable: true,
    })
    return Object.entries(settings).flatMap(([index, { settings }]) => {
      const blocks = Object.entries(settings ?? {}).flatMap(([name, value]) => (String(value) === 'true' ? [name] : []))
      return blocks.length ? [`index ${index} is blocked by ${blocks.join(', ')}`] : []
    })
  } catch (error) {
    return readStatus(error) === 404 ? [] : [`the settings cannot be read: ${described(error)}`]
  }
}
