import { useEffect, useMemo, useState } from 'react'
import { useFormats } from '../i18n/text.tsx'

const STEPS = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['week', 7 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const
const TICK_MS = 30_000

const DATE = { year: 'numeric', month: 'short', day: 'numeric' } as const
const DATE_TIME = { ...DATE, hour: 'numeric', minute: '2-digit' } as const
const WHOLE = { dateStyle: 'full', timeStyle: 'long' } as const

/** Writes a time in the reader's zone and calendar, as a string. */
export function useTime(): (at: string | Date, style?: 'date' | 'dateTime' | 'whole') => string {
  const { locale } = useFormats()
  return useMemo(() => {
    const formats = {
      date: new Intl.DateTimeFormat(locale, DATE),
      dateTime: new Intl.DateTimeFormat(locale, DATE_TIME),
      whole: new Intl.DateTimeFormat(locale, WHOLE),
    }
    return (at, style = 'dateTime') => formats[style].format(new Date(at))
  }, [locale])
}

/** A point in time; the whole of it is in the title. */
export function DateTime({ at, style = 'dateTime' }: { readonly at: string | null | undefined; readonly style?: 'date' | 'dateTime' }) {
  const format = useTime()
  if (!at) return <span aria-hidden>—</span>
  return (
    <time
      dateTime={at}
      title={format(at, 'whole')}
      // In a table of a phone, the date and the time stand below each other.
      className="whitespace-nowrap max-md:[td_&]:inline-block max-md:[td_&]:min-w-24 max-md:[td_&]:whitespace-normal"
    >
      {format(at, style).replace(DAY_PERIOD, '\u00a0$1')}
    </time>
  )
}

/** "ص" is not alone on a line. */
const DAY_PERIOD = / ([صم])$/

/** How long ago, or how long until: "3 minutes ago". It moves on by itself. */
export function RelativeTime({ at }: { readonly at: string | null | undefined }) {
  const { locale } = useFormats()
  const format = useTime()
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  const relative = useMemo(() => new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }), [locale])
  if (!at) return <span aria-hidden>—</span>
  const seconds = (Date.parse(at) - Math.max(now, Date.now())) / 1000
  const [unit, length] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return (
    <time dateTime={at} title={format(at, 'whole')} className="whitespace-nowrap">
      {unit === 'second' ? relative.format(0, 'second') : relative.format(Math.round(seconds / length), unit)}
    </time>
  )
}
