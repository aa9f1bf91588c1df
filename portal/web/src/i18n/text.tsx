import { Direction } from 'radix-ui'
import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react'
import { FormattedMessage, IntlProvider, useIntl } from 'react-intl'
import type { messages as english } from '../../messages/en/index.ts'
import { directionOf, localeOf, type Preferences, usePreferences } from './preferences.ts'

export type MessageId = keyof typeof english
type Messages = Readonly<Record<MessageId, string>>
type Values = Readonly<Record<string, string | number | bigint | Date | null | undefined>>

const LOADERS: Readonly<Record<Preferences['language'], () => Promise<{ messages: Messages }>>> = {
  en: () => import('../../messages/en/index.ts'),
  ar: () => import('../../messages/ar/index.ts'),
}

/** Gives the texts of the reader's language to all below it. A change of the language shows once its texts are here. */
export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const preferences = usePreferences()
  const { language } = preferences
  const [loaded, setLoaded] = useState<{ language: string; messages: Messages } | null>(null)
  useEffect(() => {
    let isCurrent = true
    void LOADERS[language]().then(({ messages }) => isCurrent && setLoaded({ language, messages }))
    return () => {
      isCurrent = false
    }
  }, [language])
  if (!loaded) return null
  const shown = { ...preferences, language: loaded.language as Preferences['language'] }
  return (
    <IntlProvider locale={localeOf(shown)} messages={loaded.messages} onError={onError}>
      <Direction.Provider dir={directionOf(shown)}>{children}</Direction.Provider>
    </IntlProvider>
  )
}

function onError(error: Error): void {
  if (import.meta.env.DEV) console.error(error)
}

/** Writes a message as a string: `text('models.count', { count })`. */
export function useText(): (id: MessageId, values?: Values) => string {
  const { formatMessage } = useIntl()
  return useCallback((id, values) => formatMessage({ id }, values as Record<string, string>), [formatMessage])
}

/** Writes a message whose values may be elements: `<Text id="…" values={{ name: <UserText>…</UserText> }} />`. */
export function Text({ id, values }: { readonly id: MessageId; readonly values?: Readonly<Record<string, ReactNode>> }) {
  return <FormattedMessage id={id} values={values as Record<string, ReactNode>} />
}

/** `Intl` in the reader's language, digits and calendar. */
export function useFormats() {
  const { locale } = useIntl()
  return useMemo(
    () => ({
      locale,
      number: (value: number | bigint, options?: Intl.NumberFormatOptions) => new Intl.NumberFormat(locale, options).format(value),
      percent: (share: number) => new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 }).format(share),
      bytes: (bytes: number) => {
        const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const
        const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1)
        return new Intl.NumberFormat(locale, {
          style: 'unit',
          unit: units[power]!,
          unitDisplay: 'short',
          maximumFractionDigits: power === 0 ? 0 : 1,
        }).format(bytes / 1000 ** power)
      },
      list: (items: readonly string[]) => new Intl.ListFormat(locale, { type: 'conjunction' }).format(items),
    }),
    [locale],
  )
}
