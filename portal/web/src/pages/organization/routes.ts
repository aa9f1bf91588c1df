import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const organizationRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/organization',
    component: lazyRouteComponent(() => import('./organization-page.tsx'), 'OrganizationPage'),
  }),
] as const
