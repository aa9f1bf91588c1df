import { connection } from './connection.ts'

/** Of the module, in the messages of Chromium and Firefox. Without it the module is asked for by its own address again. */
const ADDRESS = /https?:\/\/\S+\.js/

/**
 * Loads a part of the portal. While the service cannot be reached it waits, instead of failing or loading everything
 * anew, which would lose what is shown.
 */
export async function loadModule<Module>(load: () => Promise<Module>): Promise<Module> {
  await connection.untilReached()
  try {
    return await load()
  } catch (error) {
    await connection.untilReturn()
    // Browsers remember that a module could not be loaded, so the same address would fail for ever. The modules that it
    // imports have no other address, so the service is asked for first.
    const address = ADDRESS.exec(String(error))?.[0]
    return address?.startsWith(`${location.origin}/`) ? import(/* @vite-ignore */ `${address}?again`) : load()
  }
}
