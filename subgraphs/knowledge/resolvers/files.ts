import { deleteFile, findFile, listFiles, readFilePiece } from '../use-cases/files/files.ts'
import { takeFile } from '../use-cases/uploads/take-file.ts'
import type { FileResolvers, MutationResolvers, QueryResolvers } from './generated.ts'

export const fileQueries: QueryResolvers = {
  file: (_parent, { id }, { deps, ...context }) => findFile(deps, context, id),
  files: (_parent, args, { deps, ...context }) => listFiles(deps, context, args),
  async fileContent(_parent, args, { deps, ...context }) {
    const { file, bytes } = await readFilePiece(deps, context, args)
    return { file, content: Buffer.from(bytes).toString('base64'), offset: args.offset, length: bytes.length }
  },
}

export const fileMutations: MutationResolvers = {
  async uploadFile(_parent, { input }, { deps, ...context }) {
    return { file: await takeFile(deps, context, input) }
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
  __resolveReference: ({ id }, { deps, ...context }) => findFile(deps, context, id),
}
