import { readdirSync, readFileSync } from 'node:fs'
import type { Language } from './pages.ts'

const FOLDER = new URL('../../../portal/web/messages/', import.meta.url)

function read(language: Language): Readonly<Record<string, string>> {
  const folder = new URL(`${language}/`, FOLDER)
  return Object.assign(
    {},
    ...readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .map((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8'))),
  )
}

const MESSAGES = { en: read('en'), ar: read('ar') }

/** The message of the portal with this id. Values take the places of their names; it knows no plural forms. */
export function wordsOf(language: Language): (id: string, values?: Readonly<Record<string, string | number>>) => string {
  return (id, values = {}) => {
    const message = MESSAGES[language][id]
    if (message === undefined) throw new Error(`No message ${id} in ${language}`)
    return message.replace(/\{(\w+)\}/g, (placeholder, name: string) => String(values[name] ?? placeholder))
  }
}

/** A number as the portal writes it by default. */
export function numberOf(language: Language): (value: number) => string {
  return new Intl.NumberFormat(language === 'ar' ? 'ar-u-nu-arab' : 'en').format
}

/** Text as the portal shows it, with Latin digits and a point, and without controls of direction. */
export function plain(text: string | null): string {
  return (text ?? '')
    .replace(/[\u200e\u200f\u061c\u2066-\u2069]/g, '')
    .replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660))
    .replaceAll('٫', '.')
    .replaceAll('٬', ',')
}
