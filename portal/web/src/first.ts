// The first import of the bundle: the page has its language, direction and theme before anything is painted.
import { applyPreferences } from './i18n/preferences.ts'

applyPreferences()
