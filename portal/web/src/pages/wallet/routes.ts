import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'

export const walletRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/wallet',
    component: lazyPage(() => import('./wallet-page.tsx'), 'WalletPage', ['usage', 'wallet']),
  }),
] as const
