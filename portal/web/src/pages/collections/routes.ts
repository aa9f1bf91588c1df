import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.ts'
import { root } from '../../app/root.tsx'
import { readCollectionFilters, readDocumentView, readListFilters } from './common/filters.ts'

const MESSAGES = ['collections', 'document', 'documents', 'evaluation', 'models', 'searching', 'settings'] as const

export const collectionsRoutes = [
  createRoute({
    getParentRoute: () => root,
    path: '/collections',
    validateSearch: readListFilters,
    component: lazyPage(() => import('./collections-page.tsx'), 'CollectionsPage', MESSAGES),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/collections/$id',
    validateSearch: readCollectionFilters,
    component: lazyPage(() => import('./collection-page.tsx'), 'CollectionPage', MESSAGES),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/collections/$id/documents/$documentId',
    validateSearch: readDocumentView,
    component: lazyPage(() => import('./document/document-page.tsx'), 'DocumentPage', MESSAGES),
  }),
] as const
