import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const collectionsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/collections',
    component: lazyRouteComponent(() => import('./collections-page.tsx'), 'CollectionsPage'),
  }),
] as const
