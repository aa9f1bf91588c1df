import type { MessageFormatElement } from '@formatjs/icu-messageformat-parser'

const ARABIC_INDIC = /[٠-٩]/g
const SEPARATORS: Readonly<Record<string, string>> = { '٫': '.', '٬': ',' }
/** Messages that show a sample of the digits, and so stay unchanged. */
const SAMPLES = 'preferences.digits.'

export function toLatinDigits(text: string): string {
  return text.replace(ARABIC_INDIC, (digit) => String(digit.charCodeAt(0) - 0x660)).replace(/[٫٬]/g, (separator) => SEPARATORS[separator]!)
}

/**
 * Returns the messages with Latin digits for their own numbers, such as the example of an amount. `Intl` formats their
 * values.
 */
export function withLatinDigits(messages: Readonly<Record<string, MessageFormatElement[]>>): Record<string, MessageFormatElement[]> {
  return Object.fromEntries(
    Object.entries(messages).map(([id, elements]) => [id, id.startsWith(SAMPLES) ? elements : elements.map(change)]),
  )
}

function change(element: MessageFormatElement): MessageFormatElement {
  if (element.type === 0) return { ...element, value: toLatinDigits(element.value) }
  if (!('options' in element)) return element
  const options = Object.entries(element.options).map(([name, option]) => [name, { ...option, value: option.value.map(change) }])
  return { ...element, options: Object.fromEntries(options) }
}
