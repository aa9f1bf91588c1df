import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { root } from '../../app/root.tsx'

export const walletRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/wallet',
    component: lazyRouteComponent(() => import('./wallet-page.tsx'), 'WalletPage'),
  }),
] as const
