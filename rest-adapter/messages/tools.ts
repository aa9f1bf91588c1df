import { checkBoolean, checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'
import { isClosed } from './output.ts'

/** Tools of one request. Inference checks the chat protocol's limit, which is lower. */
const MAX_TOOLS = 1_024

/**
 * Converts the tools to functions of the chat protocol, in the same order.
 * @throws {KisError} `invalid_request`: a tool is wrong, or of a kind that is not offered
 */
export function toTools(value: unknown): readonly JsonObject[] {
  return isAbsent(value) ? [] : listAt(value, 'tools', 0, MAX_TOOLS).map((tool, index) => toTool(tool, `tools[${index}]`))
}

function toTool(value: unknown, path: string): JsonObject {
  const tool = objectAt(value, path)
  if (!isAbsent(tool.type) && tool.type !== 'custom') {
    refuse(
      'unsupported_value',
      `${path}.type`,
      `Tools of the type '${textAt(tool.type, `${path}.type`)}' are run or known by one vendor only. Describe your own with \`name\` and \`input_schema\`.`,
    )
  }
  checkBoolean(tool.strict, `${path}.strict`)
  return {
    type: 'function',
    function: {
      name: textAt(tool.name, `${path}.name`),
      ...(!isAbsent(tool.description) && { description: textAt(tool.description, `${path}.description`) }),
      parameters: objectAt(tool.input_schema, `${path}.input_schema`),
      ...(tool.strict === true && isClosed(tool.input_schema) && { strict: true }),
    },
  }
}

const CHOICES: Readonly<Record<string, string>> = { auto: 'auto', any: 'required', none: 'none' }

/** @throws {KisError} `invalid_request`: the choice is wrong */
export function toToolChoice(value: unknown): JsonObject {
  if (isAbsent(value)) return {}
  const { type, name, disable_parallel_tool_use: isSingle } = objectAt(value, 'tool_choice')
  checkOneOf(textAt(type, 'tool_choice.type'), 'tool_choice.type', [...Object.keys(CHOICES), 'tool'])
  checkBoolean(isSingle, 'tool_choice.disable_parallel_tool_use')
  const choice = CHOICES[type as string] ?? { type: 'function', function: { name: textAt(name, 'tool_choice.name') } }
  return { tool_choice: choice, ...(isSingle === true && { parallel_tool_calls: false }) }
}
