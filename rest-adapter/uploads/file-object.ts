import type { Selected } from '../../schema/operations.ts'
import type { File } from '../contract/files.ts'
import { lowerCase, unixSeconds } from '../http/values.ts'

export const FILE = 'id name mediaType status checksum sizeBytes createdAt'

export type FileData = Selected<'File', typeof FILE>

export function toFile(data: FileData): File {
  return {
    id: data.id,
    object: 'file',
    created_at: unixSeconds(data.createdAt),
    file_name: data.name,
    media_type: data.mediaType,
    status: lowerCase(data.status),
    checksum: data.checksum,
    size_bytes: data.sizeBytes,
  }
}

/** Returns the file with the fields that OpenAI's clients read, in addition to the service's own. */
export function toOpenAiFile(data: FileData, purpose: unknown) {
  return { ...toFile(data), bytes: data.sizeBytes, filename: data.name, purpose }
}
