import './first.ts'
import './styles.css'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { SessionProvider } from './app/session.tsx'
import { LanguageProvider } from './i18n/text.tsx'
import { router } from './router.tsx'
import { Toasts } from './ui/toast.tsx'
import { TooltipProvider } from './ui/tooltip.tsx'

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <LanguageProvider>
      <TooltipProvider delayDuration={400}>
        <SessionProvider>
          <RouterProvider router={router} />
        </SessionProvider>
        <Toasts />
      </TooltipProvider>
    </LanguageProvider>
  </StrictMode>,
)
