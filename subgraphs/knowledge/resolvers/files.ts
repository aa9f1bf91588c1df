import { checkInteger } from '../../common/check.ts'
import { requireScope } from '../../common/identity/principal.ts'
import { countDownload } from '../use-cases/files/count-download.ts'
import { signDownload } from '../use-cases/files/download.ts'
import { deleteFile, findFile, listFiles, readFilePiece, uploadFile } from '../use-cases/files/files.ts'
import type { FileResolvers, MutationResolvers, QueryResolvers } from './generated.ts'

export const fileQueries: QueryResolvers = {
  file: (_parent, { id }, { deps, ...context }) => findFile(deps, context, id),
  files: (_parent, args, { deps, sifting, ...context }) => listFiles(deps, context, args, sifting),
  async fileDownload(_parent, { id, isPartOfCall }, { deps, ...context }) {
    if (!isPartOfCall) await countDownload(deps, context)
    return signDownload(deps, context, id)
  },
  async fileContent(_parent, args, { deps, ...context }) {
    await countDownload(deps, context)
    const { file, bytes } = await readFilePiece(deps, context, args)
    return { file, content: Buffer.from(bytes).toString('base64'), offset: args.offset, length: bytes.length }
  },
}

export const fileMutations: MutationResolvers = {
  async uploadFile(_parent, { input }, { deps, ...context }) {
    return { file: await uploadFile(deps, context, input) }
  },
  async deleteFile(_parent, { id }, { deps, ...context }) {
    await deleteFile(deps, context, id)
    return { id }
  },
}

export const FileFields: FileResolvers = {
  id: ({ _id }) => _id,
  checksum: ({ sha256 }) => `sha256:${sha256}`,
  status: () => 'uploaded',
  async documents({ organizationId, attachments }, { first }, { records }) {
    const ids = Object.keys(attachments).toSorted().reverse().slice(0, checkedFirst(first))
    const found = await Promise.all(ids.map((id) => records.findDocument(organizationId, id)))
    return found.filter((document) => document !== null)
  },
  __resolveReference: ({ id }, { caller, records }) => records.findFile(requireScope(caller, 'knowledge:read').organizationId, id),
}

const MAX_DOCUMENTS = 100

function checkedFirst(first: number | null | undefined): number {
  checkInteger(first, 'first', 1, MAX_DOCUMENTS)
  return first ?? 20
}
