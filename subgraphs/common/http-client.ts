import { createRequire } from 'node:module'
import type * as undici from 'undici'

/**
 * The parts of undici with which the service asks others. The whole package also loads `fetch`, WebSockets, caches and
 * mocks: 50 ms and 13 MB. Import it elsewhere only where `fetch` is needed.
 */

const require = createRequire(import.meta.url)

const { prototype } = require('undici/lib/dispatcher/dispatcher.js') as typeof undici.Dispatcher
// As the whole package does.
Object.assign(prototype, { request: require('undici/lib/api/api-request.js') })

export const Pool = require('undici/lib/dispatcher/pool.js') as typeof undici.Pool
export type Pool = undici.Pool
export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client
export type Client = undici.Client
export const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector
export const errors = require('undici/lib/core/errors.js') as typeof undici.errors
