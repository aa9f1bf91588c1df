import { resolve } from 'node:path'
import { type CatalogFile, readCatalogFile } from '../common/catalog-file.ts'

export interface InferenceConfig {
  readonly catalog: Pick<CatalogFile, 'engines' | 'models'>
  /** Folder of the embedded embedding model. */
  readonly modelDirectory: URL
}

/** @throws {CatalogError} with every problem of the catalog at once. */
export function readInferenceConfig(env: Readonly<Record<string, string | undefined>>): InferenceConfig {
  return {
    catalog: readCatalogFile(resolve(env.KIS_CATALOG || 'catalog.yaml'), env),
    modelDirectory: new URL('../../models/e5-small-ar-en/', import.meta.url),
  }
}
