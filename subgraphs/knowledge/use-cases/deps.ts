import type { BytePaths } from '../../common/bytes/byte-paths.ts'
import type { StoreFiles } from '../../common/documents/verify-files.ts'
import type { Egress } from '../../common/egress/egress.ts'
import type { EventLog, Telling } from '../../common/events/event-log.ts'
import type { Clock } from '../../common/process/clock.ts'
import type { IdSource } from '../../common/process/ids.ts'
import type { Log } from '../../common/process/log.ts'
import type { Accounts } from '../ports/accounts.ts'
import type { BlobStore } from '../ports/blob-store.ts'
import type { ChunkIndex } from '../ports/chunk-index.ts'
import type { DocumentParser } from '../ports/document-parser.ts'
import type { Inference } from '../ports/inference.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'
import type { PageBilling } from '../ports/page-billing.ts'
import type { PageRecogniser } from '../ports/page-recogniser.ts'
import type { CollectionDigests } from './collection-digests.ts'
import type { RecordRoom } from './record-room.ts'

/** The ports of the knowledge subgraph, and its clock, ID generator and log. */
interface Ports {
  readonly store: KnowledgeStore
  readonly blobs: BlobStore
  readonly index: ChunkIndex
  readonly files: StoreFiles
  readonly parser: DocumentParser
  readonly recogniser: PageRecogniser
  readonly inference: Inference
  /** Fetches documents from the web. */
  readonly egress: Egress
  readonly accounts: Accounts
  readonly pageBilling: PageBilling
  readonly bytePaths: BytePaths
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/** The dependencies of all use cases of the knowledge subgraph. Each use case picks the members that it uses. */
export interface Deps extends Ports {
  readonly digests: CollectionDigests
  readonly room: RecordRoom
  readonly events: EventLog<Telling>
  /** Documents of an organization that start per round of the fair queue, by plan. 1 for other plans. */
  readonly ingestionWeights: ReadonlyMap<string, number>
  /** Notifies the workers that a job is due. */
  readonly wake: () => void
}
