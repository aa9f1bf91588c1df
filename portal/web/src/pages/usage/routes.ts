import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

export const usageRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/usage',
    validateSearch: readFilters,
    component: lazyRouteComponent(() => import('./usage-page.tsx'), 'UsagePage'),
  }),
] as const
