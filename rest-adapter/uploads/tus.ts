import type { Call, Route, RouteResponse } from '../http/route.ts'

export const PATH = '/v1/uploads/tus'
/** Extensions of the protocol that the service has. */
export const EXTENSIONS = ['creation', 'creation-with-upload', 'expiration', 'termination']

/** What every answer to `OPTIONS` says of the protocol. */
export const TUS_HEADERS = {
  'tus-resumable': '1.0.0',
  'tus-version': '1.0.0',
  'tus-extension': EXTENSIONS.join(','),
}

/** The protocol is loaded when the first upload comes. */
async function handle(call: Call): Promise<RouteResponse> {
  // Nothing of the body may flow before the protocol reads it.
  call.stream?.pause()
  const { handleTus } = await import('./tus-server.ts')
  return handleTus(call)
}

const shared = { body: 'stream', protocolHeaders: TUS_HEADERS, handle } as const

export const tusRoutes: readonly Route[] = [
  { ...shared, method: 'POST', path: PATH },
  { ...shared, method: 'HEAD', path: `${PATH}/{id}` },
  { ...shared, method: 'PATCH', path: `${PATH}/{id}` },
  { ...shared, method: 'DELETE', path: `${PATH}/{id}` },
]
