import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

export const usageRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/usage',
    validateSearch: readFilters,
    component: lazyPage(() => import('./usage-page.tsx'), 'UsagePage', ['usage']),
  }),
] as const
