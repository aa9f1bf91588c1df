import type { AnyVariables, Client, TypedDocumentNode } from 'urql'
import { toFailure } from '../../../data/failure.ts'
import { toBase64 } from '../../../parts/read-file.ts'
import { APPEND_TO_UPLOAD, ATTACH_FILE, CANCEL_UPLOAD, COMPLETE_UPLOAD, CREATE_UPLOAD, UPLOAD_STATE } from './documents.ts'
import { type Transport, UploadQueue } from './uploads.ts'

/** Uploads files by GraphQL, and attaches them to a collection: as documents, or as the next version of one. */
function transportOf(client: Client, collectionId: string, documentId: string | null): Transport {
  const mutate = async <Data, Variables extends AnyVariables>(
    mutation: TypedDocumentNode<Data, Variables>,
    variables: Variables,
  ): Promise<Data> => {
    const { data, error } = await client.mutation(mutation, variables).toPromise()
    if (error || !data) throw toFailure(error ?? {})
    return data
  }
  return {
    create: async (name, sizeBytes) => (await mutate(CREATE_UPLOAD, { name, sizeBytes })).createUpload.upload.id,
    append: async (id, offset, piece) => {
      const contentBase64 = await toBase64(piece).catch(() => {
        // The file was moved or changed since it was chosen.
        throw toFailure({ graphQLErrors: [{ message: '', extensions: { code: 'not_found' } }] })
      })
      return (await mutate(APPEND_TO_UPLOAD, { input: { id, offset, contentBase64 } })).appendToUpload.upload.offset
    },
    offset: async (id) => {
      const { data, error } = await client.query(UPLOAD_STATE, { id }, { requestPolicy: 'network-only' }).toPromise()
      if (error) throw toFailure(error)
      // A completed upload has all its bytes, and may be completed again.
      return data?.upload && data.upload.status !== 'CANCELLED' ? data.upload.offset : null
    },
    complete: async (id) => {
      const { upload } = (await mutate(COMPLETE_UPLOAD, { id })).completeUpload
      if (!upload.file) throw toFailure({ graphQLErrors: [{ message: '', extensions: { code: 'not_found' } }] })
      return upload.file.id
    },
    cancel: async (id) => void (await mutate(CANCEL_UPLOAD, { id })),
    attach: async (fileId) => {
      const { document, outcome } = (await mutate(ATTACH_FILE, { input: { collectionId, fileId, documentId } })).createDocument
      return { documentId: document.id, isNew: outcome !== 'UNCHANGED' }
    },
  }
}

const queues = new WeakMap<Client, Map<string, UploadQueue>>()

/**
 * Returns the upload queue of a collection, or of one document's versions. It continues while the reader is on other
 * pages, until the session ends.
 */
export function queueOf(client: Client, collectionId: string, documentId: string | null): UploadQueue {
  const ofClient = queues.get(client) ?? new Map<string, UploadQueue>()
  queues.set(client, ofClient)
  const key = documentId ?? collectionId
  const queue = ofClient.get(key) ?? new UploadQueue(transportOf(client, collectionId, documentId))
  ofClient.set(key, queue)
  return queue
}
