import { lazyRouteComponent } from '@tanstack/react-router'
import { loadModule } from '../data/load-module.ts'
import { type MessageFile, wantMessages } from '../i18n/messages.ts'

/**
 * Returns a page that is loaded when it is opened, together with the messages of these files. Those of `common` and
 * `errors` are always loaded.
 */
export function lazyPage<Name extends string, Module extends Record<Name, (props: never) => unknown>>(
  load: () => Promise<Module>,
  name: Name,
  messages: readonly MessageFile[] = [],
) {
  const loadWhole = async () => (await Promise.all([loadModule(load), wantMessages(messages)]))[0]
  return lazyRouteComponent(loadWhole as never, name as never)
}
