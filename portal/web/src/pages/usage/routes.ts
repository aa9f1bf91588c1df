import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const usageRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/usage',
    component: lazyPage(() => import('./usage-page.tsx'), 'UsagePage'),
  }),
] as const
