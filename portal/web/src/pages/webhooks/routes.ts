import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readDeliveryFilters } from './filters.ts'

export const webhooksRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/webhooks',
    component: lazyPage(() => import('./webhooks-page.tsx'), 'WebhooksPage', ['webhooks']),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/webhooks/$id',
    validateSearch: readDeliveryFilters,
    component: lazyPage(() => import('./endpoint-page.tsx'), 'EndpointPage', ['webhooks']),
  }),
] as const
