import { type ComponentType, lazy } from 'react'
import { loadModule } from './load-module.ts'

/** A part of a page that is loaded when it is first shown, inside a `Suspense`. */
export function lazyPart<Name extends string, Props>(load: () => Promise<Readonly<Record<Name, ComponentType<Props>>>>, name: Name) {
  return lazy(async () => ({ default: (await loadModule(load))[name] }))
}
