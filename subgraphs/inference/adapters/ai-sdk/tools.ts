import type { LanguageModelV4FunctionTool, LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import { isAbsent, refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

interface Tools {
  readonly tools: LanguageModelV4FunctionTool[]
  readonly toolChoice: LanguageModelV4ToolChoice | undefined
}

interface ProtocolTool {
  readonly type: string
  readonly function: {
    readonly name: string
    readonly description?: string
    readonly parameters?: object
    readonly strict?: boolean | null
  }
}
type NamedChoice = { readonly type: string; readonly function?: { readonly name?: unknown }; readonly allowed_tools?: AllowedTools }
interface AllowedTools {
  readonly mode?: unknown
  readonly tools?: readonly { readonly function?: { readonly name?: unknown } }[]
}

/** @throws {KisError} `invalid_request`: a tool is not a function, or the choice names an unknown tool */
export function toTools(request: ProtocolObject): Tools {
  if (Array.isArray(request.functions) && request.functions.length > 0)
    refuse('unsupported_value', 'functions', "This model accepts 'tools', not the older 'functions'.")
  const tools = ((request.tools ?? []) as readonly ProtocolTool[]).map(toTool)
  const choice = request.tool_choice as string | NamedChoice | null | undefined
  if (isAbsent(choice) || tools.length === 0) return { tools, toolChoice: undefined }
  if (typeof choice === 'string') return { tools, toolChoice: { type: choice as 'auto' | 'none' | 'required' } }
  if (choice.type === 'function')
    return { tools, toolChoice: { type: 'tool', toolName: knownName(tools, choice.function?.name, 'tool_choice.function.name') } }
  if (choice.type === 'allowed_tools') {
    const names = (choice.allowed_tools?.tools ?? []).map((tool, index) =>
      knownName(tools, tool.function?.name, `tool_choice.allowed_tools.tools[${index}].function.name`),
    )
    const type = choice.allowed_tools?.mode === 'required' ? 'required' : 'auto'
    return { tools: tools.filter(({ name }) => names.includes(name)), toolChoice: { type } }
  }
  return refuse('unsupported_value', 'tool_choice.type', "This model accepts the choices 'function' and 'allowed_tools'.")
}

function toTool({ type, function: definition }: ProtocolTool, index: number): LanguageModelV4FunctionTool {
  if (type !== 'function') refuse('unsupported_value', `tools[${index}].type`, 'This model accepts tools of the type function only.')
  const { name, description, parameters, strict } = definition
  return {
    type: 'function',
    name,
    inputSchema: parameters ?? { type: 'object', properties: {} },
    ...(!isAbsent(description) && { description }),
    ...(!isAbsent(strict) && { strict }),
  }
}

function knownName(tools: readonly LanguageModelV4FunctionTool[], name: unknown, param: string): string {
  const tool = tools.find((each) => each.name === name)
  return tool ? tool.name : refuse('invalid_request', param, `'${param}' names no tool of 'tools'.`)
}
