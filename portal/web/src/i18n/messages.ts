import type { MessageFormatElement } from '@formatjs/icu-messageformat-parser'
import { useSyncExternalStore } from 'react'
import type { messages as english } from '../../messages/en/index.ts'
import { loadModule } from '../data/load-module.ts'
import { type Preferences, readPreferences, watchPreferences } from './preferences.ts'

type Language = Preferences['language']
type Message = string | MessageFormatElement[]
/** The messages as the build writes them: those with values are parsed. */
type File = Readonly<Record<string, Message>>

export type MessageId = keyof typeof english
/** A file of `messages/`, without its extension. */
export type MessageFile =
  | ('agents' | 'collections' | 'document' | 'documents' | 'evaluation' | 'home' | 'keys' | 'models' | 'operator' | 'organization')
  | ('people' | 'searching' | 'settings' | 'usage' | 'wallet' | 'webhooks' | 'workflows')

export interface Messages {
  readonly language: Language
  readonly messages: Record<string, MessageFormatElement[]>
}

const FILES = import.meta.glob<{ readonly default: File }>('../../messages/*/*.json')
/** Messages that any page may show. */
const COMMON = ['common', 'errors'] as const

/** The files that the open pages need. */
const wanted = new Set<string>(COMMON)
const loaded = new Map<string, File>()
let current: Messages | null = null
/** The paths of the files whose messages `current` contains. */
let shown: ReadonlySet<string> = new Set()
const watchers = new Set<() => void>()

const pathOf = (language: Language, name: string) => `../../messages/${language}/${name}.json`

/** Loads the wanted files in the reader's language, and then shows them. */
async function load(): Promise<void> {
  const { language } = readPreferences()
  const paths = [...wanted].map((name) => pathOf(language, name))
  if (current?.language === language && paths.every((path) => shown.has(path))) return
  const missing = paths.filter((path) => !loaded.has(path))
  await Promise.all(missing.map(async (path) => loaded.set(path, (await loadModule(FILES[path]!)).default)))
  // Another language was chosen meanwhile.
  if (readPreferences().language !== language) return load()
  // Includes files that were wanted later and arrived earlier.
  shown = new Set([...wanted].map((name) => pathOf(language, name)).filter((path) => loaded.has(path)))
  const parsed = [...shown].flatMap((path) => Object.entries(loaded.get(path)!))
  current = { language, messages: Object.fromEntries(parsed.map(([id, message]) => [id, toElements(message)])) }
  for (const watcher of watchers) watcher()
}

const toElements = (message: Message) => (typeof message === 'string' ? [{ type: 0 as const, value: message }] : message)

/** Resolves when the messages of these files can be shown. */
export function wantMessages(files: readonly MessageFile[]): Promise<void> {
  for (const file of files) wanted.add(file)
  return load()
}

export const shownMessages = (): Messages | null => current

/**
 * Returns the messages in the shown language: the reader's, once its messages are loaded. Null: none are loaded yet.
 */
export function useMessages(): Messages | null {
  return useSyncExternalStore((watcher) => {
    watchers.add(watcher)
    return () => watchers.delete(watcher)
  }, shownMessages)
}

void load()
watchPreferences(() => void load())
