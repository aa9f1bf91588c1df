import type { DatabaseSync } from 'node:sqlite'
import type { SearchFilter } from '../../domain/search/search-filter.ts'
import { filterSql } from './chunk-index-filter.ts'
import { refuse } from './chunk-index-refusal.ts'
import type { Tables } from './chunk-index-schema.ts'

/**
 * CPU time of a filter, in milliseconds. A plain condition takes 1 µs for a document, so it fits with a million of them.
 * The dearest filter, 50 times `contains` over long texts, takes 140 µs. A busy machine does not change it.
 */
const MAX_CPU_MS = 5_000

/**
 * The ids of the chunks that a filter lets through. The collection bounds whatever else a search does; this also depends
 * on what the caller asks for, so it has a limit.
 */
export function eligibleChunks(db: DatabaseSync, tables: Tables, filter: SearchFilter, maxCpuMs = MAX_CPU_MS): ReadonlySet<number> {
  const { sql, parameters } = filterSql(filter)
  const before = process.threadCpuUsage()
  // SQLite learns from `_row` that it takes an argument. Without one it would be called once and not for rows.
  db.function('goes_on', (_row) => {
    const { user, system } = process.threadCpuUsage(before)
    if ((user + system) / 1_000 < maxCpuMs) return 1
    return refuse('operation_too_complex', 'The filter takes too long on this collection. Use fewer conditions, or more exact ones.')
  })
  // Beside conditions on pages, those on attributes may be tried for each chunk of a document. Pages alone take little.
  const isMixed = sql.includes('c.page_') && sql.includes('json_')
  const looks = isMixed ? `${look('d.id')} AND ${look('c.id')}` : look('d.id')
  // CROSS JOIN keeps the documents outside, so that a document's attributes are tested once, not for each chunk.
  const { ids } = db
    .prepare(
      `SELECT group_concat(c.id) AS ids FROM ${tables.documents} d CROSS JOIN ${tables.chunks} c ON c.document = d.id
       WHERE ${looks} AND (${sql})`,
    )
    .get(...parameters) as { ids: string | null }
  return new Set(ids?.split(',').map(Number) ?? [])
}

/** Looks at the clock for one row in 64, before the filter is tried. Nobody can choose rows for which it does not. */
function look(row: string): string {
  return `(random() & 63 OR goes_on(${row}))`
}
