// The first script, and a small one: it sets the page's language, direction and theme before anything is painted. The
// application runs after the first paint, which shows the frame of index.html.
import './fonts.css'
import './styles.css'
import { requestEarly } from './data/early.ts'
import { applyPreferences } from './i18n/preferences.ts'

/** Longest wait for the first paint: a background tab paints nothing. */
const MAX_WAIT_MS = 500

applyPreferences()
// The service saw the cookie of a session.
if ('framed' in document.documentElement.dataset) requestEarly()
const painted = new Promise<void>((resolve) => {
  new PerformanceObserver(() => resolve()).observe({ type: 'paint', buffered: true })
  setTimeout(resolve, document.hidden ? 0 : MAX_WAIT_MS)
})
/** Lets tasks that wait for the processor run first. */
const pause = () => new Promise((resolve) => setTimeout(resolve))
// The packages run in a task of their own. This promise is not awaited, so modules that import this one do not wait.
void painted
  .then(() => import('react-dom/client'))
  .then(pause)
  .then(() => import('./main.tsx'))
