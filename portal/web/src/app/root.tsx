import { createRootRoute, type ErrorComponentProps } from '@tanstack/react-router'
import { CircleAlert } from 'lucide-react'
import { useText } from '../i18n/text.tsx'
import { EmptyState, NotFound } from '../parts/states.tsx'
import { Button } from '../ui/button.tsx'
import { Shell } from './shell.tsx'

/** The parent of each page's route. */
export const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: Broken })

/** Shown for a defect of the page, or a part of it that could not be loaded. */
export function Broken(_: ErrorComponentProps) {
  const text = useText()
  return (
    <EmptyState
      icon={CircleAlert}
      title={text('state.broken')}
      actions={<Button onClick={() => location.reload()}>{text('state.reload')}</Button>}
    >
      {text('state.brokenHelp')}
    </EmptyState>
  )
}
