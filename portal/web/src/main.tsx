import { RouterProvider } from '@tanstack/react-router'
import { StrictMode, startTransition } from 'react'
import { createRoot } from 'react-dom/client'
import { SessionProvider, type Viewer } from './app/session.tsx'
import { early } from './data/early.ts'
import { wantMessages } from './i18n/messages.ts'
import { LanguageProvider } from './i18n/text.tsx'
import { router } from './router.tsx'
import { Toasts } from './ui/toast.tsx'
import { TooltipProvider } from './ui/tooltip.tsx'

/** Longer than this the frame of index.html does not stand for a page that says itself what it waits for. */
const MAX_WAIT_MS = 2_000

/** No module waits for it, because pages import what this file imports. */
async function start(): Promise<void> {
  const isReady = Promise.all([early(), router.load()])
  const tooLong = new Promise((resolve) => setTimeout(resolve, MAX_WAIT_MS))
  // Until there are words, the page shows what index.html has.
  await Promise.all([wantMessages([]), Promise.race([isReady, tooLong])])
  const viewer = (await Promise.race([early(), null])) as Viewer | null
  const root = createRoot(document.getElementById('root')!)
  // In slices: the page scrolls meanwhile.
  startTransition(() =>
    root.render(
      <StrictMode>
        <LanguageProvider>
          <TooltipProvider delayDuration={400}>
            <SessionProvider viewer={viewer}>
              <RouterProvider router={router} />
            </SessionProvider>
            <Toasts />
          </TooltipProvider>
        </LanguageProvider>
      </StrictMode>,
    ),
  )
}

void start()
