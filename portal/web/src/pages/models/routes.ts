import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const modelsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/models',
    component: lazyRouteComponent(() => import('./models-page.tsx'), 'ModelsPage'),
  }),
] as const
