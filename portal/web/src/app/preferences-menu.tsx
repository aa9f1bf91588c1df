import { Languages, Settings2 } from 'lucide-react'
import { CALENDARS, changePreferences, DIGITS, THEMES } from '../i18n/preferences.ts'
import { useText } from '../i18n/text.tsx'
import { usePreferences } from '../i18n/use-preferences.ts'
import { Button, IconButton } from '../ui/button.tsx'
import { Menu, MenuChoice, MenuSeparator } from '../ui/menu.tsx'

/** Each language has its own name for itself. */
const LANGUAGE_NAMES = [
  { value: 'en', label: <span lang="en">English</span> },
  { value: 'ar', label: <span lang="ar">العربية</span> },
] as const

/** Language, theme, digits and calendar. A change takes effect at once and is stored. */
export function PreferencesMenu() {
  const text = useText()
  const { language, theme, digits, calendar } = usePreferences()
  return (
    <Menu trigger={<IconButton label={text('preferences.title')} icon={Settings2} />}>
      <MenuChoice
        label={text('preferences.language')}
        value={language}
        onChange={(language) => changePreferences({ language })}
        options={LANGUAGE_NAMES}
      />
      <MenuSeparator />
      <MenuChoice
        label={text('preferences.theme')}
        value={theme}
        onChange={(theme) => changePreferences({ theme })}
        options={THEMES.map((value) => ({ value, label: text(`preferences.theme.${value}`) }))}
      />
      <MenuSeparator />
      <MenuChoice
        label={text('preferences.digits')}
        value={digits}
        onChange={(digits) => changePreferences({ digits })}
        options={DIGITS.map((value) => ({ value, label: text(`preferences.digits.${value}`) }))}
      />
      <MenuSeparator />
      <MenuChoice
        label={text('preferences.calendar')}
        value={calendar}
        onChange={(calendar) => changePreferences({ calendar })}
        options={CALENDARS.map((value) => ({ value, label: text(`preferences.calendar.${value}`) }))}
      />
    </Menu>
  )
}

/** Switches to the other language with one click. */
export function LanguageButton() {
  const { language } = usePreferences()
  const other = language === 'ar' ? LANGUAGE_NAMES[0] : LANGUAGE_NAMES[1]
  return (
    <Button variant="ghost" icon={Languages} onClick={() => changePreferences({ language: other.value })}>
      {other.label}
    </Button>
  )
}
