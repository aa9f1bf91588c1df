import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

export const keysRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/keys',
    validateSearch: readFilters,
    component: lazyRouteComponent(() => import('./keys-page.tsx'), 'KeysPage'),
  }),
] as const
