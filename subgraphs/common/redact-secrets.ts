/** Secrets with fewer characters are not looked for: such a text is in ordinary words, too. */
const MIN_LENGTH = 8

/**
 * Returns a function that removes secrets from what somebody else wrote, in any case of the letters, and also where they
 * are encoded for a URL, in base64 or in JSON.
 */
export function redactorOf(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.filter(({ length }) => length >= MIN_LENGTH).flatMap(formsOf)
  if (forms.length === 0) return (text) => text
  // The longest first: one form may contain another.
  const alternatives = [...new Set(forms)].sort((a, b) => b.length - a.length).map((form) => RegExp.escape(form))
  const pattern = new RegExp(alternatives.join('|'), 'gi')
  return (text) => text.replaceAll(pattern, '…')
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret)
    .toString('base64')
    .replace(/={1,2}$/, '')
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), base64, base64.replaceAll('+', '-').replaceAll('/', '_')]
}
