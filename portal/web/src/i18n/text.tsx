import { Direction } from 'radix-ui'
import { type ReactNode, useCallback, useMemo } from 'react'
import { FormattedMessage, IntlProvider, useIntl } from 'react-intl'
import { withLatinDigits } from './digits.ts'
import { type MessageId, useMessages } from './messages.ts'
import { directionOf, localeOf } from './preferences.ts'
import { usePreferences } from './use-preferences.ts'

export type { MessageId }

type Values = Readonly<Record<string, string | number | bigint | Date | null | undefined>>

/**
 * Provides the texts of the reader's language to everything below it. A change of the language takes effect once its
 * texts are loaded.
 */
export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const preferences = usePreferences()
  const loaded = useMessages()
  const { digits } = preferences
  const messages = useMemo(() => (loaded && digits === 'latn' ? withLatinDigits(loaded.messages) : loaded?.messages), [loaded, digits])
  if (!loaded || !messages) return null
  const shown = { ...preferences, language: loaded.language }
  return (
    <IntlProvider locale={localeOf(shown)} messages={messages} onError={onError}>
      <Direction.Provider dir={directionOf(shown)}>{children}</Direction.Provider>
    </IntlProvider>
  )
}

function onError(error: Error): void {
  if (import.meta.env.DEV) console.error(error)
}

/** Writes a message as a string: `text('shell.key', { last4 })`. */
export function useText(): (id: MessageId, values?: Values) => string {
  const { formatMessage } = useIntl()
  return useCallback((id, values) => formatMessage({ id }, values as Record<string, string>), [formatMessage])
}

/** Writes a message if there is one with the ID. For computed IDs, such as that of an error code. */
export function useFindText(): (id: string) => string | null {
  const { formatMessage, messages } = useIntl()
  return useCallback((id) => (id in messages ? formatMessage({ id }) : null), [formatMessage, messages])
}

/** Writes a message whose values may be elements: `<Text id="…" values={{ name: <UserText>…</UserText> }} />`. */
export function Text({ id, values }: { readonly id: MessageId; readonly values?: Readonly<Record<string, ReactNode>> }) {
  return <FormattedMessage id={id} values={values as Record<string, ReactNode>} />
}

const SIZES = ['kibibyte', 'mebibyte', 'gibibyte', 'tebibyte'] as const

/** Returns `Intl` formats in the reader's language, digits and calendar. */
export function useFormats() {
  const { locale, formatMessage } = useIntl()
  return useMemo(() => {
    const bytesAlone = (count: number) => formatMessage({ id: 'common.size.byte' }, { count })
    /** Formats in the binary units of the plans. `Intl` has only decimal ones. */
    const bytes = (count: number) => {
      if (count < 1024) return bytesAlone(count)
      const rounded = (power: number) => Math.round((count / 1024 ** power) * 10) / 10
      let power = Math.min(Math.floor(Math.log2(count) / 10), SIZES.length)
      if (rounded(power) === 1024 && power < SIZES.length) power++
      return formatMessage({ id: `common.size.${SIZES[power - 1]!}` }, { size: new Intl.NumberFormat(locale).format(rounded(power)) })
    }
    return {
      locale,
      number: (value: number | bigint, options?: Intl.NumberFormatOptions) => new Intl.NumberFormat(locale, options).format(value),
      percent: (share: number) => new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 }).format(share),
      bytes,
      /** Formats two sizes for comparison. If rounding would hide their difference, both are in bytes. */
      bytesApart: (one: number, other: number): readonly [string, string] =>
        one !== other && bytes(one) === bytes(other) ? [bytesAlone(one), bytesAlone(other)] : [bytes(one), bytes(other)],
      list: (items: readonly string[]) => new Intl.ListFormat(locale, { type: 'conjunction' }).format(items),
    }
  }, [locale, formatMessage])
}
