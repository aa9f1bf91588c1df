import { useSyncExternalStore } from 'react'
import { type Preferences, readPreferences, watchPreferences } from './preferences.ts'

export function usePreferences(): Preferences {
  return useSyncExternalStore(watchPreferences, readPreferences)
}
