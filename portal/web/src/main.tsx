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

/** Longest time that the frame of index.html stays while a page loads that can show its own loading state. */
const MAX_WAIT_MS = 2_000

/** Not awaited by any module, because pages import what this file imports. */
async function start(): Promise<void> {
  const isReady = Promise.all([early(), router.load()])
  const tooLong = new Promise((resolve) => setTimeout(resolve, MAX_WAIT_MS))
  // Until the messages are loaded, the page shows the frame of index.html.
  await Promise.all([wantMessages([]), Promise.race([isReady, tooLong])])
  const viewer = (await Promise.race([early(), null])) as Viewer | null
  const root = createRoot(document.getElementById('root')!)
  // A transition renders in slices, so that the page can scroll meanwhile.
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
