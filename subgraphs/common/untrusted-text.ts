/**
 * What anybody may have written, for a model to read. What only the service or a chat template may write, such as a
 * citation mark, a role or the end of a tool's result, is written so that it reads the same and means nothing.
 */

/** Characters that nobody sees, and marks that sit on others. A forger puts them into a word that would be told. */
const HIDDEN = '\\p{Cf}\\p{Mn}\\u115f\\u1160\\u3164\\uffa0\\u2800'
const UNSEEN = `[\\s${HIDDEN}]`
const OPEN = '[\\[\\uff3b\\ufe5d\\u3010\\u3014\\u3016\\u3018\\u301a\\u27e6\\u2045\\u2772\\u2997\\ufe47]'
const CLOSE = '[\\]\\uff3d\\ufe5e\\u3011\\u3015\\u3017\\u3019\\u301b\\u27e7\\u2046\\u2773\\u2998\\ufe48]'
const HASH = '[#\\uff03\\ufe5f\\u266f]'
const LESS = '[<\\uff1c\\ufe64\\u2039\\u3008]'
const MORE = '[>\\uff1e\\ufe65\\u203a\\u3009]'
const BAR = '[|\\uff5c\\u00a6\\u2223\\u01c0]'

/** `[#7]`, in any digits and brackets. Each part ends where the next begins, so a text takes linear time. */
const MARK = new RegExp(`${OPEN}${UNSEEN}*${HASH}((?:${UNSEEN}*\\p{Nd})+)${UNSEEN}*${CLOSE}`, 'gu')
/** `<|im_start|>`, `<｜end▁of▁sentence｜>`: without their ends they are words. */
const TOKEN_START = new RegExp(`${LESS}${UNSEEN}*(?=${BAR})`, 'gu')
const TOKEN_END = new RegExp(`(?<=${BAR})${UNSEEN}{0,8}${MORE}`, 'gu')
/** A tag, and a word in brackets. Their names decide. */
const TAG = new RegExp(
  `${LESS}${UNSEEN}{0,8}([/\\uff0f]?)${UNSEEN}{0,8}((?:[${HIDDEN}]{0,8}[\\p{L}\\p{N}_:-]){1,60})([^<>\\uff1c\\uff1e]{0,200})${MORE}`,
  'gu',
)
const BRACKETED = new RegExp(
  `${OPEN}${UNSEEN}{0,8}([/\\uff0f]?)${UNSEEN}{0,8}((?:[${HIDDEN}]{0,8}[\\p{L}_]){1,40})${UNSEEN}{0,8}${CLOSE}`,
  'gu',
)
/** `Human:` at the beginning of a line, and `### Instruction:`. */
const ROLE_LINE =
  /^([ \t]*(?:#{1,6}[ \t]*)?)(human|user|assistant|system|developer|tool|function|instructions?|response|المستخدم|المساعد|النظام)([ \t]*[:：])/gimu

/** Tags by which models are told roles, tools, their results and thoughts, and the tokens that templates write as tags. */
const TAGS = new Set(
  `system user assistant human developer instruction instructions tool tools tool_use tool_call tool_calls tool_result tool_results
  tool_response tool_responses tool_output function function_call function_calls function_result function_results invoke parameter
  parameters available_tools result results search_result search_results document documents context passage passages citation citations
  think thinking scratchpad answer s bos eos pad unk sys start_of_turn end_of_turn start_of_image end_of_image begin_of_text
  end_of_text`.split(/\s+/),
)
const BRACKETS = new Set(
  'INST SYSTEM_PROMPT AVAILABLE_TOOLS TOOL_CALLS TOOL_RESULTS TOOL_CONTENT TOOL_CALL TOOL_RESULT ARGS CALL_ID THINK PREFIX MIDDLE SUFFIX'.split(
    ' ',
  ),
)

/** Those that are made of parts. A test applies them to the longest texts. */
export const COMPOSED_EXPRESSIONS: readonly RegExp[] = [MARK, TOKEN_START, TOKEN_END, TAG, BRACKETED]

const bare = (text: string) => text.normalize('NFKC').replaceAll(new RegExp(UNSEEN, 'gu'), '')

/** The text with its citation marks as `(#7)`, which resolve to nothing. */
export function escapeMarks(text: string): string {
  return text.replaceAll(MARK, (_mark, digits: string) => `(#${bare(digits)})`)
}

/** The text as a model may read it. The text that is stored, and shown to people, stays as it is. */
export function escapeUntrustedText(text: string): string {
  return escapeMarks(text)
    .replaceAll(TOKEN_START, '‹')
    .replaceAll(TOKEN_END, '›')
    .replaceAll(TAG, (tag, slash: string, name: string, rest: string) => {
      const plain = bare(name).toLowerCase()
      const isKnown = TAGS.has(plain) || TAGS.has(plain.slice(plain.indexOf(':') + 1))
      return isKnown ? `‹${slash && '/'}${bare(name)}${rest}›` : tag
    })
    .replaceAll(BRACKETED, (word, slash: string, name: string) =>
      BRACKETS.has(bare(name).toUpperCase()) ? `(${slash && '/'}${bare(name)})` : word,
    )
    .replaceAll(ROLE_LINE, '$1“$2”$3')
}
