import { isAbsent, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'

/** OpenAI's limit for one request. */
const MAX_TOOLS = 128

const AS_FUNCTION = 'Describe it as a function, and run it on your side.'
/** Tools that OpenAI runs itself, and what to do instead. */
const HOSTED = new Map([
  ['file_search', 'Search with POST /v1/collections/{id}/search, by yourself or by a function, and send what it finds as input.'],
  ['image_generation', 'No model here generates images.'],
])

/**
 * Converts the tools to functions of the chat protocol.
 * @throws {KisError} `invalid_request`: a tool is not a function
 */
export function toChatTools(tools: unknown): readonly JsonObject[] {
  if (isAbsent(tools)) return []
  return listAt(tools, 'tools', 0, MAX_TOOLS).map((value, index) => {
    const tool = objectAt(value, `tools[${index}]`)
    refuseHosted(textAt(tool.type, `tools[${index}].type`), `tools[${index}].type`)
    const { name, description, parameters, strict } = tool
    return {
      type: 'function',
      function: {
        name,
        ...(!isAbsent(description) && { description }),
        ...(!isAbsent(parameters) && { parameters }),
        ...(!isAbsent(strict) && { strict }),
      },
    }
  })
}

/**
 * Converts the choice to the chat protocol.
 * @throws {KisError} `invalid_request`: the choice is for something other than functions
 */
export function toChatToolChoice(choice: unknown): unknown {
  if (isAbsent(choice) || typeof choice === 'string') return choice
  const { type, name, mode, tools } = objectAt(choice, 'tool_choice')
  if (textAt(type, 'tool_choice.type') !== 'allowed_tools') {
    refuseHosted(type as string, 'tool_choice.type')
    return { type: 'function', function: { name: textAt(name, 'tool_choice.name') } }
  }
  const allowed = listAt(tools, 'tool_choice.tools', 1, MAX_TOOLS).map((value, index) => {
    const path = `tool_choice.tools[${index}]`
    const tool = objectAt(value, path)
    refuseHosted(textAt(tool.type, `${path}.type`), `${path}.type`)
    return { type: 'function', function: { name: textAt(tool.name, `${path}.name`) } }
  })
  return { type: 'allowed_tools', allowed_tools: { mode, tools: allowed } }
}

function refuseHosted(type: string, param: string): void {
  if (type !== 'function') {
    refuse('unsupported_value', param, `Tools of the type '${type}' are not offered, only functions. ${HOSTED.get(type) ?? AS_FUNCTION}`)
  }
}
