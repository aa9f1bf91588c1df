import { connection } from './connection.ts'

/**
 * The module's address in the messages of Chromium and Firefox. Without it the retry uses the module's own address
 * again.
 */
const ADDRESS = /https?:\/\/\S+\.js/

/** Retries on a network that breaks again and again. After these a newer portal may have replaced the module. */
const MAX_RETRIES = 3

/**
 * Loads a module of the portal. While the service is unreachable, the call waits: a failure or a reload of the page
 * would lose what is shown. `load` must be the import alone (`() => import('./x.ts')`), because a retry imports the
 * module from another address and calls nothing after it.
 */
export async function loadModule<Module>(load: () => Promise<Module>): Promise<Module> {
  await connection.untilReached()
  let next = load
  for (let repeat = 1; ; repeat++)
    try {
      return await next()
    } catch (error) {
      if (repeat > MAX_RETRIES) throw error
      await connection.untilReturn()
      // Browsers cache the failure of a module, so the same address would fail forever. The modules that it imports
      // cannot get another address, so wait for the service first.
      const address = ADDRESS.exec(String(error))?.[0]
      next = address?.startsWith(`${location.origin}/`) ? () => import(/* @vite-ignore */ `${address}?again=${repeat}`) : load
    }
}
