/** The first pages of the portal, in the order of its navigation. `/operator` needs the scope `operator`. */
export const PAGES = [
  'home',
  'collections',
  'agents',
  'workflows',
  'models',
  'usage',
  'wallet',
  'keys',
  'webhooks',
  'organization',
  'people',
  'operator',
] as const

export const LANGUAGES = ['en', 'ar'] as const
export const THEMES = ['light', 'dark'] as const
/** A phone, a tablet, a desktop. */
export const WIDTHS = [360, 768, 1440] as const

export type Language = (typeof LANGUAGES)[number]
export type Theme = (typeof THEMES)[number]
