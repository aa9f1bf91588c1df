import { LANGUAGES, type Language } from '../../subgraphs/common/languages.ts'

const TEXTS = {
  en: {
    direction: 'ltr',
    name: 'English',
    title: 'Reference',
    skip: 'API reference',
    signedIn: 'You are signed in: requests that you try here use your session. An API key that you enter takes precedence.',
  },
  ar: {
    direction: 'rtl',
    name: 'العربية',
    title: 'المرجع',
    skip: 'مرجع الواجهة البرمجية',
    signedIn: 'أنت مسجّل الدخول: الطلبات التي تجرّبها هنا تستخدم جلستك، وإن أدخلت مفتاحًا فله الأولوية.',
  },
} as const

/**
 * The page may run the renderer of this service and call this service. The renderer sets styles of elements, which no
 * nonce covers.
 */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Starts the renderer. A separate file, so that the page needs no inline script. */
export const START_SCRIPT = `const app = document.getElementById('app')
Scalar.createApiReference(app, JSON.parse(app.dataset.configuration))
`

/**
 * Renders the reference page. Descriptions of the API are English; the words of the page are in the reader's language.
 * `isSignedIn`: the browser has a session of the portal, which counts for requests without a key.
 */
export function renderPage(title: string, language: Language, isSignedIn: boolean): string {
  const { direction, skip, signedIn } = TEXTS[language]
  const configuration = {
    url: '/v1/openapi.json',
    localization: { locale: language, direction },
    // All features that call Scalar's services are off: the page calls no other host.
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: 'never',
    persistAuth: false,
    authentication: { preferredSecurityScheme: isSignedIn ? null : 'apiKey' },
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  }
  const others = LANGUAGES.map((each) =>
    each === language
      ? `<b lang="${each}">${TEXTS[each].name}</b>`
      : `<a href="/docs?lang=${each}" lang="${each}" hreflang="${each}">${TEXTS[each].name}</a>`,
  )
  return `<!doctype html>
<html lang="${language}" dir="${direction}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><nav class="languages">${others.join(' ')} <a href="/v1/openapi.json">openapi.json</a> <a href="/v1/workflow.schema.json">workflow.schema.json</a>${isSignedIn ? ` <span>${signedIn}</span>` : ''}</nav>
<main id="app" aria-label="${escaped(skip)}" data-configuration="${escaped(JSON.stringify(configuration))}"></main>
<noscript><p>This page needs JavaScript. The same as JSON: <a href="/v1/openapi.json">openapi.json</a>.</p></noscript>
<script src="/docs/scalar.js" defer></script><script src="/docs/start.js" defer></script></body></html>
`
}

/** Code and identifiers stay left to right in an Arabic page. */
const STYLE = `
body { margin: 0; font-family: system-ui, sans-serif }
.languages { display: flex; flex-wrap: wrap; gap: .8rem; padding: .5rem 1rem; font-size: .875rem; border-bottom: 1px solid #8885 }
pre, code { direction: ltr; unicode-bidi: isolate }
`

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
