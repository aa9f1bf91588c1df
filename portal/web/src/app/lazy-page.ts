import { lazyRouteComponent } from '@tanstack/react-router'
import { connection } from '../data/connection.ts'

/** Of the module, in the messages of Chromium and Firefox. Without it the page is loaded anew. */
const ADDRESS = /https?:\/\/\S+\.js/

/**
 * A page that is loaded when it is opened. While the service cannot be reached, the page waits for it instead of failing
 * or loading everything anew, which would lose what is shown.
 */
export function lazyPage<Name extends string, Module extends Record<Name, (props: never) => unknown>>(
  load: () => Promise<Module>,
  name: Name,
) {
  const loadOrWait = async (): Promise<Module> => {
    await connection.untilReached()
    try {
      return await load()
    } catch (error) {
      await connection.untilReturn()
      return loadAgain(error)
    }
  }
  // Browsers remember that a module could not be loaded, so the same address would fail for ever. The modules that it
  // imports have no other address, so the service is asked for first.
  const loadAgain = (error: unknown): Promise<Module> => {
    const address = ADDRESS.exec(String(error))?.[0]
    return address?.startsWith(`${location.origin}/`) ? import(/* @vite-ignore */ `${address}?again`) : load()
  }
  return lazyRouteComponent(loadOrWait as never, name as never)
}
