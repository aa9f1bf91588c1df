import type { Link } from '../../subgraphs/common/link/link.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import type { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import type { LoadShedder } from '../../subgraphs/common/server/admission/load-shedder.ts'
import type { Telemetry } from '../../subgraphs/common/telemetry/telemetry.ts'
import type { RestConfig } from '../config.ts'
import type { InFlightRequests } from './in-flight-requests.ts'

/** The dependencies of the adapter. */
export interface RestDeps {
  /**
   * The link to the gateway. The caller is the API key without `Bearer`. The gateway checks the key of every operation,
   * including `{ __typename }`.
   */
  readonly gateway: Link<string | null>
  readonly loadShedder: Pick<LoadShedder, 'enter' | 'recognise'>
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
  readonly config: RestConfig
  /** The budget for large bodies, shared with everything else in the process that reads bodies. */
  readonly bodies: LargeBodies
  /** Default: no telemetry. */
  readonly telemetry?: Telemetry
}

/** The objects that the parts of the adapter share. */
export interface RestParts extends RestDeps {
  readonly inFlight: InFlightRequests
  readonly telemetry: Telemetry
}
