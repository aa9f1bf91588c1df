import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const operatorRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/operator',
    component: lazyRouteComponent(() => import('./operator-page.tsx'), 'OperatorPage'),
  }),
] as const
