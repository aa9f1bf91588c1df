import type { FastifyRequest } from 'fastify'

/** The first part of each of the portal's paths. The routes of `portal/web` are below these; all others are of the APIs. */
export const PAGES = [
  'home',
  'collections',
  'agents',
  'workflows',
  'models',
  'keys',
  'usage',
  'wallet',
  'webhooks',
  'organization',
  'people',
  'operator',
  'sign-in',
] as const

const PAGE = new RegExp(`^/(?:(?:${PAGES.join('|')})(?:/.*)?)?$`)

/** The first parts of the paths of the APIs. A browser that opens an unknown path below one gets the error of the API. */
const API = /^\/(?:v\d+|graphql|mcp|docs|session|assets|healthz|readyz|metrics|\.well-known)(?:\/|$)/

const wantsHtml = ({ headers: { accept = '' } }: Pick<FastifyRequest, 'headers'>) => accept.includes('text/html')

/** Whether a browser opens a page of the portal. Clients of an API, which do not ask for HTML, get what they always got. */
export function requestsPortal(path: string, request: Pick<FastifyRequest, 'headers'>): boolean {
  return wantsHtml(request) && PAGE.test(path)
}

/** Whether a browser opens a page that does not exist. */
export function requestsUnknownPage(path: string, request: Pick<FastifyRequest, 'headers' | 'is404'>): boolean {
  return request.is404 && wantsHtml(request) && !API.test(path)
}
