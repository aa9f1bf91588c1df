import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const webhooksRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/webhooks',
    component: lazyPage(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
  }),
] as const
