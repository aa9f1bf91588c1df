import { resolve } from 'node:path'
import { createLog } from '../../subgraphs/common/process/log.ts'
import { copyInstallation } from '../copy/copy.ts'
import { readServers } from '../settings/servers.ts'
import type { Service } from './service.ts'
import { verifyLedger } from './verify-stores.ts'

export interface CopyArguments {
  /** The data folder. */
  readonly folder: string
  readonly direction: 'to servers' | 'from servers'
}

/** Files that the command writes have texts and the ledger. */
const GROUP_AND_OTHERS = 0o077

/** @throws {Error} see `copyInstallation`; or a variable is missing or wrong */
export async function copyStores(
  { folder, direction }: CopyArguments,
  environment: NodeJS.ProcessEnv,
  say: (line: string) => void,
): Promise<boolean> {
  const { servers, secret, logLevel } = readServers(environment)
  process.umask(GROUP_AND_OTHERS)
  const isSound = await copyInstallation({
    dataDirectory: resolve(folder),
    direction,
    servers,
    secret,
    log: createLog('copy', logLevel),
    say,
    judge: (read) => verifyLedger(answeringBy(read), { json: false }, say),
  })
  say(
    direction === 'to servers'
      ? `All is there and equal. Start the roles with these variables, the same KIS_SECRET among them. ${folder} is as it was: start nothing on it any more.`
      : `All is there and equal. Start the service with KIS_DATA_DIR=${folder} and the same KIS_SECRET, without the variables of MongoDB and Elasticsearch. They are as they were: start nothing on them any more.`,
  )
  return isSound
}

/** Answers the query of `verifyLedger` while no service runs. */
function answeringBy(read: Parameters<Parameters<typeof copyInstallation>[0]['judge']>[0]): Service {
  return {
    ask: async <Data>(_query: string, { after }: Readonly<Record<string, unknown>>) =>
      ({ verifyLedger: await read(after as string | null) }) as Data,
  }
}
