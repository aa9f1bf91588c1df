import { gatewayOperation } from '../../schema/operations.ts'
import * as operations from '../contract/files.ts'
import { NAMED_PAGE_INFO, NAMED_PAGE_NAMES, namedList, namedPageVariables } from '../http/lists.ts'
import { deleteRoute, readRoute } from '../http/resource-routes.ts'
import { ok, type Route, route } from '../http/route.ts'
import { FILE, toFile } from '../uploads/file-object.ts'
import { requireUpload, uploadFile } from '../uploads/upload-file.ts'

const LIST = gatewayOperation(`query Files($first: Int!, $after: String, $order: SortOrder, $sortBy: ListSort, $filter: FileFilter) {
  files(first: $first, after: $after, order: $order, sortBy: $sortBy, filter: $filter) {
    edges { node { ${FILE} } } ${NAMED_PAGE_INFO} } }`)
const GET = gatewayOperation(`query File($id: ID!) { file(id: $id) { ${FILE} } }`)
const DELETE = gatewayOperation('mutation DeleteFile($id: ID!) { deleteFile(id: $id) { id } }')
const DOWNLOAD = gatewayOperation('query FileDownload($id: ID!) { fileDownload(id: $id) { path } }')

export const fileRoutes: readonly Route[] = [
  route({
    operation: operations.uploadFile,
    body: 'upload',
    refuse: requireUpload,
    handle: uploadFile,
  }),
  route({
    operation: operations.listFiles,
    async handle({ execute, query }) {
      const data = await execute(LIST, namedPageVariables(query), NAMED_PAGE_NAMES)
      return ok(namedList(data.files, toFile, query))
    },
  }),
  readRoute(operations.getFile, GET, 'file', ({ file }) => file && toFile(file)),
  deleteRoute(operations.deleteFile, DELETE, 'file', (data) => data.deleteFile.id),
  route({
    operation: operations.downloadFile,
    asIs: true,
    async handle({ execute, openBytes, params }) {
      const { fileDownload } = await execute(DOWNLOAD, { id: params.id })
      return openBytes(fileDownload.path)
    },
  }),
]
