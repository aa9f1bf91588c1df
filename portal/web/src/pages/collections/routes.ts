import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const collectionsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/collections',
    component: lazyPage(() => import('./collections-page.tsx'), 'CollectionsPage'),
  }),
] as const
