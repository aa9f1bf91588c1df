import type { QueueWatch } from '../server/queue-watch.ts'
import type { Link, Operation } from './link.ts'

/** Callers choose the names of their operations. */
const MAX_NAME_CHARACTERS = 100
const NAME = /^\s*(?:query|mutation|subscription)\s+(\w+)/

/**
 * Wraps a link so that `watch` knows its running operations by name: until the answer, or the first event of a
 * subscription. `to` names the other side.
 */
export function watchedLink<Who>(link: Link<Who>, to: string, watch: Pick<QueueWatch, 'begin'>): Link<Who> {
  const begin = (operation: Operation) => watch.begin(nameOperation(to, operation))
  return {
    ...link,
    execute(operation, context) {
      const end = begin(operation)
      const answer = link.execute(operation, context)
      answer.then(end, end)
      return answer
    },

    subscribe(operation, context) {
      const events = link.subscribe(operation, context)
      let first: Promise<unknown> | undefined
      return {
        next() {
          const end = first ? undefined : begin(operation)
          const event = events.next()
          if (end) {
            first = event
            event.then(end, end)
          }
          return event
        },
        return: (value) => events.return!(value),
        [Symbol.asyncIterator]() {
          return this
        },
      }
    },
  }
}

/** `knowledge: SearchCollection`. Nothing else of the text, which may contain private data. */
export function nameOperation(to: string, { query = '', operationName }: Partial<Operation>): string {
  const name = operationName ?? NAME.exec(query)?.[1] ?? 'an operation without a name'
  return `${to}: ${name.slice(0, MAX_NAME_CHARACTERS)}`
}
