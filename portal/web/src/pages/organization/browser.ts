/**
 * Names in the order of matching, because user agents contain those of others: Edge also says Chrome, and Chrome also
 * says Safari.
 */
const BROWSERS = [
  ['Edge', /\bEdg(?:e|A|iOS)?\//],
  ['Opera', /\b(?:OPR|Opera)\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(?:Firefox|FxiOS)\//],
  ['Chrome', /\b(?:Chrome|CriOS|HeadlessChrome)\//],
  ['Safari', /\bSafari\//],
] as const
const SYSTEMS = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMac OS X\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
] as const

const find = (names: readonly (readonly [string, RegExp])[], said: string) => names.find(([, sign]) => sign.test(said))?.[0] ?? null

/** Returns the browser and the system in a `User-Agent`. Null: it contains none that is known. */
export function readBrowser(userAgent: string | null): { readonly browser: string | null; readonly system: string | null } {
  const said = userAgent ?? ''
  return { browser: find(BROWSERS, said), system: find(SYSTEMS, said) }
}
