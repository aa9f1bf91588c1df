import { useEffect, useMemo, useState } from 'react'
import { loadModule } from '../data/load-module.ts'
import { toLatinDigits } from '../i18n/digits.ts'
import { readSentences, type Sentence, translate } from '../i18n/service-sentences.ts'
import { type MessageId, useFormats, useText } from '../i18n/text.tsx'
import { usePreferences } from '../i18n/use-preferences.ts'
import { useTime } from './time.tsx'
import { harmless } from './user-text.tsx'

const NUMBER = /^\d+(?:\.\d+)?$/
const NUMBERS = /^\d+(?:, \d+)+$/
const SIZE = /^([\d.]+) (bytes?|KiB|MiB|GiB|TiB)$/
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
const UNITS = { KiB: 'kibibyte', MiB: 'mebibyte', GiB: 'gibibyte', TiB: 'tebibyte' } as const

let sentences: Promise<readonly Sentence[]> | null = null
/** Loads the translations on demand: the file is large, and few readers meet a failure. */
function loadSentences(): Promise<readonly Sentence[]> {
  sentences ??= loadModule(() => import('../../messages/service-ar.json')).then(({ default: arabic }) => readSentences(arabic))
  return sentences
}

/**
 * Translates the service's English text to the reader's language. Null: there is no translation. Empty: the
 * translations are loading.
 */
function useServiceSentences(): (said: string) => string | null {
  const { language, digits } = usePreferences()
  const write = useWriteValue()
  const [known, setKnown] = useState<readonly Sentence[] | null>(null)
  useEffect(() => {
    if (language !== 'ar') return
    // Without the translations the reader sees English.
    loadSentences().then(setKnown, () => setKnown([]))
  }, [language])
  return useMemo(() => {
    if (language !== 'ar') return () => null
    if (known === null) return () => ''
    const inDigits = digits === 'latn' ? toLatinDigits : (text: string) => text
    return (said: string) => {
      const translated = translate(known, harmless(said), write)
      return translated && inDigits(translated)
    }
  }, [language, digits, known, write])
}

/** Writes numbers, sizes and times in the reader's format. All else is a name, and isolated from the text around it. */
function useWriteValue(): (value: string) => string {
  const text = useText()
  const { number, bytes } = useFormats()
  const time = useTime()
  return useMemo(
    () => (value) => {
      if (NUMBER.test(value)) return number(Number(value))
      if (NUMBERS.test(value))
        return value
          .split(', ')
          .map(Number)
          .map((each) => number(each))
          .join(text('common.listSeparator'))
      if (TIME.test(value)) return time(value)
      const [, size, unit] = SIZE.exec(value) ?? []
      if (size === undefined) return `\u2068${value}\u2069`
      if (!(unit! in UNITS)) return bytes(Number(size))
      return text(`common.size.${UNITS[unit as keyof typeof UNITS]}` satisfies MessageId, { size: number(Number(size)) })
    },
    [text, number, bytes, time],
  )
}

/** A text of the service: in the reader's language, or untranslated. */
export function ServiceText({ children }: { readonly children: string }) {
  const translated = useServiceSentences()(children)
  if (translated !== null) return <span className="wrap-anywhere whitespace-pre-wrap">{translated}</span>
  return (
    <bdi dir="ltr" lang="en" className="wrap-anywhere whitespace-pre-wrap">
      {harmless(children)}
    </bdi>
  )
}
