import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readFilters } from './filters.ts'

export const keysRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/keys',
    validateSearch: readFilters,
    component: lazyPage(() => import('./keys-page.tsx'), 'KeysPage', ['keys']),
  }),
] as const
