import { KisError } from '../errors.ts'
import { type Connection, type CountItems, encodeCursor, type Page, toConnection } from '../link/connection.ts'

/**
 * Characters of records and of their long fields that one operation may read in one subgraph. Serializing them takes
 * half a second of the event loop.
 */
const MAX_CHARACTERS = 32 * 1024 * 1024

/** Limits what one operation reads and returns in one subgraph, where its records may be long. */
export class ReadBudget {
  #left: number
  #last: Promise<unknown> = Promise.resolve()

  constructor(maxCharacters: number = MAX_CHARACTERS) {
    this.#left = maxCharacters
  }

  /** @throws {KisError} the operation has read as much as it may. */
  spend(characters: number): void {
    this.#left -= characters
    if (this.#left >= 0) return
    throw new KisError(
      'operation_too_complex',
      `The operation reads more than ${MAX_CHARACTERS} characters. Request less at once: a smaller \`first\`, fewer aliases, or fewer long fields.`,
    )
  }

  /** Charges the budget for `text`, and returns it. */
  charged<Text extends string | null>(text: Text): Text {
    this.spend(text?.length ?? 0)
    return text
  }

  /** Runs reads one after the other. This limits what is read at once, and no read starts after the budget is spent. */
  runInSequence<T>(read: () => Promise<T>): Promise<T> {
    const reading = this.#last.then(() => {
      this.spend(0)
      return read()
    })
    this.#last = reading.catch(() => undefined)
    return reading
  }
}

/** Counts the characters of all texts in a value. */
export function countCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, inner) => sum + countCharacters(inner), 0)
}

/** Records that are read at once: four of the longest (4 million characters each) are 16 MB. */
const READ_AT_ONCE = 4
/** A page ends with the record that brings it above this. */
const MAX_PAGE_CHARACTERS = 4 * 1024 * 1024

/**
 * Returns a page of records that may be long. Where records are long, the page has fewer items than requested and
 * reports that another page follows. `read` returns the records after the one with this key, in the direction of
 * reading, or from the page's own start.
 * @throws {KisError} the operation has read as much as it may.
 */
export async function longRecordsPage<T>(
  page: Page,
  budget: ReadBudget,
  keyOf: (record: T) => string,
  read: (from: string | null, limit: number) => Promise<readonly T[]>,
  count: CountItems,
): Promise<Connection<T>> {
  const records: T[] = []
  let characters = 0
  while (records.length < page.limit) {
    const last = records.at(-1)
    const limit = Math.min(READ_AT_ONCE, page.limit - records.length)
    const found = await budget.runInSequence(() => read(last === undefined ? page.from : keyOf(last), limit))
    for (const record of found) {
      if (characters > MAX_PAGE_CHARACTERS) return toConnection(records, page, keyOf, count, encodeCursor(keyOf(records.at(-1)!)))
      const length = countCharacters(record)
      budget.spend(length)
      records.push(record)
      characters += length
    }
    if (found.length < limit) break
  }
  return toConnection(records, page, keyOf, count)
}
