import { connection } from './connection.ts'

/** Of the module, in the messages of Chromium and Firefox. Without it the module is asked for by its own address again. */
const ADDRESS = /https?:\/\/\S+\.js/

/** A network that breaks again and again. After these a newer portal may have taken the module's place. */
const MAX_RETRIES = 3

/**
 * Loads a part of the portal. While the service cannot be reached it waits, instead of failing or loading everything
 * anew, which would lose what is shown. Give `load` the bare import, because a repeat resolves to what it resolves to.
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
      // Browsers remember that a module could not be loaded, so the same address would fail for ever. The modules that
      // it imports have no other address, so the service is asked for first.
      const address = ADDRESS.exec(String(error))?.[0]
      next = address?.startsWith(`${location.origin}/`) ? () => import(/* @vite-ignore */ `${address}?again=${repeat}`) : load
    }
}
