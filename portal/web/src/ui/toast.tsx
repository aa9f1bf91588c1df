import { type ComponentType, useEffect, useState, useSyncExternalStore } from 'react'
import { loadModule } from '../data/load-module.ts'

const LOAD_AFTER_MS = 4_000
const MAX_SHOWN = 4

interface Shown {
  readonly id: number
  readonly title: string
  readonly tone: 'success' | 'danger'
}

let shown: readonly Shown[] = []
let last = 0
const watchers = new Set<() => void>()

function set(next: readonly Shown[]): void {
  shown = next
  for (const watcher of watchers) watcher()
}

/** Reports an event briefly. Anything that the reader must act on belongs on the page. */
export function toast(title: string, tone: Shown['tone'] = 'success'): void {
  set([...shown, { id: ++last, title, tone }].slice(-MAX_SHOWN))
}

export function closeToast(id: number): void {
  set(shown.filter((each) => each.id !== id))
}

export function useToasts(): readonly Shown[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => shown,
  )
}

/** The container of toasts. Its code loads after the page, because no toast comes before. */
export function Toasts() {
  const [List, setList] = useState<ComponentType | null>(null)
  const isWanted = useToasts().length > 0
  useEffect(() => {
    if (List) return
    const load = () =>
      void loadModule(() => import('./toast-list.tsx'))
        .then(({ ToastList }) => setList(() => ToastList))
        .catch(() => {})
    const timer = setTimeout(load, isWanted ? 0 : LOAD_AFTER_MS)
    return () => clearTimeout(timer)
  }, [List, isWanted])
  return List && <List />
}
