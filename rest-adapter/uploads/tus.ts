import * as operations from '../contract/files.ts'
import { type Call, type Route, type RouteResponse, route } from '../http/route.ts'

export const PATH = '/v1/uploads/tus'
/** Extensions of the protocol that the service supports. */
export const EXTENSIONS = ['creation', 'creation-with-upload', 'expiration', 'termination']

/** Headers of the protocol in every response to `OPTIONS`. */
export const TUS_HEADERS = {
  'tus-resumable': '1.0.0',
  'tus-version': '1.0.0',
  'tus-extension': EXTENSIONS.join(','),
}

/** Handles a request. The protocol's code is loaded with the first upload. */
async function handle(call: Call): Promise<RouteResponse> {
  // The body must not flow before the protocol's code reads it.
  call.stream?.pause()
  const { handleTus } = await import('./tus-server.ts')
  return handleTus(call)
}

const shared = { body: 'stream', protocolHeaders: TUS_HEADERS, handle } as const

export const tusRoutes: readonly Route[] = [
  route({ ...shared, operation: operations.createTusUpload }),
  route({ ...shared, operation: operations.headTusUpload }),
  route({ ...shared, operation: operations.patchTusUpload }),
  route({ ...shared, operation: operations.deleteTusUpload }),
]
