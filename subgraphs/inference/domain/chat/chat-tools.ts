import { checkBoolean, checkName, checkOneOf, isAbsent, listAt, objectAt, refuse, textAt } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { checkStrictSchema } from './strict-schema.ts'

/** OpenAI's limit for one request. */
const MAX_TOOLS = 128

/**
 * Checks tools, functions (the older form of tools) and the choice among them.
 * @throws {KisError} one of them is wrong
 */
export function checkTools(request: ProtocolObject): void {
  checkBoolean(request.parallel_tool_calls, 'parallel_tool_calls')
  const tools = isAbsent(request.tools) ? [] : listAt(request.tools, 'tools', 0, MAX_TOOLS)
  for (const [index, value] of tools.entries()) checkTool(value, `tools[${index}]`)
  const functions = isAbsent(request.functions) ? [] : listAt(request.functions, 'functions', 0, MAX_TOOLS)
  for (const [index, value] of functions.entries()) checkFunction(value, `functions[${index}]`)
  checkToolChoice(request.tool_choice, tools as readonly ProtocolObject[])
  if (isAbsent(request.function_call)) return
  if (typeof request.function_call === 'string') checkOneOf(request.function_call, 'function_call', ['none', 'auto'])
  else checkName(objectAt(request.function_call, 'function_call').name, 'function_call.name')
}

function checkTool(value: unknown, param: string): void {
  const tool = objectAt(value, param)
  if (textAt(tool.type, `${param}.type`) === 'function') checkFunction(tool.function, `${param}.function`)
}

function checkFunction(value: unknown, param: string): void {
  const { name, description, parameters, strict } = objectAt(value, param)
  checkName(name, `${param}.name`)
  if (!isAbsent(description)) textAt(description, `${param}.description`)
  checkBoolean(strict, `${param}.strict`)
  if (isAbsent(parameters)) return
  if (strict === true) checkStrictSchema(parameters, `${param}.parameters`)
  else objectAt(parameters, `${param}.parameters`)
}

function checkToolChoice(choice: unknown, tools: readonly ProtocolObject[]): void {
  if (isAbsent(choice)) return
  if (typeof choice === 'string') {
    checkOneOf(choice, 'tool_choice', ['none', 'auto', 'required'])
    if (choice === 'required' && tools.length === 0)
      refuse('invalid_request', 'tool_choice', "'tool_choice' is 'required' without 'tools'.")
    return
  }
  const { type, function: named } = objectAt(choice, 'tool_choice')
  if (textAt(type, 'tool_choice.type') !== 'function') return
  const { name } = objectAt(named, 'tool_choice.function')
  checkName(name, 'tool_choice.function.name')
  const isThere = tools.some((tool) => (tool.function as ProtocolObject | undefined)?.name === name)
  if (!isThere) refuse('invalid_request', 'tool_choice.function.name', `The tool '${name}' of 'tool_choice' is not among 'tools'.`)
}
