// The first script, and a small one: the page has its language, direction and theme before anything is painted. The
// application runs after the first paint, which shows the frame that index.html has.
import './fonts.css'
import './styles.css'
import { requestEarly } from './data/early.ts'
import { applyPreferences } from './i18n/preferences.ts'

/** A tab in the background paints nothing. */
const MAX_WAIT_MS = 500

applyPreferences()
// The service saw the cookie of a session.
if ('framed' in document.documentElement.dataset) requestEarly()
const painted = new Promise<void>((resolve) => {
  new PerformanceObserver(() => resolve()).observe({ type: 'paint', buffered: true })
  setTimeout(resolve, document.hidden ? 0 : MAX_WAIT_MS)
})
/** What waits for the processor comes first. */
const pause = () => new Promise((resolve) => setTimeout(resolve))
// The packages run in a task of their own. Nothing waits here for what imports this module.
void painted
  .then(() => import('react-dom/client'))
  .then(pause)
  .then(() => import('./main.tsx'))
