import { checkBoolean, checkName, checkOneOf, isAbsent, objectAt, refuse, textAt } from '../../../common/check.ts'
import { checkStrictSchema } from './strict-schema.ts'

const JSON_WORD = /json/i

/**
 * Checks `response_format` of a request whose messages were checked.
 * @throws {KisError} the format is wrong
 */
export function checkResponseFormat(value: unknown, messages: readonly Readonly<Record<string, unknown>>[]): void {
  if (isAbsent(value)) return
  const format = objectAt(value, 'response_format')
  checkOneOf(textAt(format.type, 'response_format.type'), 'response_format.type', ['text', 'json_object', 'json_schema'])
  if (format.type === 'json_object') checkJsonWord(messages)
  if (format.type === 'json_schema') checkJsonSchema(objectAt(format.json_schema, 'response_format.json_schema'))
}

function checkJsonSchema({ name, description, schema, strict }: Readonly<Record<string, unknown>>): void {
  const param = 'response_format.json_schema'
  checkName(name, `${param}.name`)
  if (!isAbsent(description)) textAt(description, `${param}.description`)
  checkBoolean(strict, `${param}.strict`)
  if (strict === true) checkStrictSchema(schema, `${param}.schema`)
  else if (!isAbsent(schema)) objectAt(schema, `${param}.schema`)
}

/**
 * Requires the word JSON in the messages: a model that may write only JSON, but has no instruction to, can write white
 * space forever.
 */
function checkJsonWord(messages: readonly Readonly<Record<string, unknown>>[]): void {
  const isSaid = messages.some(({ content }) =>
    typeof content === 'string'
      ? JSON_WORD.test(content)
      : Array.isArray(content) && content.some(({ text }) => typeof text === 'string' && JSON_WORD.test(text)),
  )
  if (!isSaid) {
    refuse(
      'invalid_request',
      'messages',
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    )
  }
}
