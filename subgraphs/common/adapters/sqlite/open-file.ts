import type { Installation } from '../../identity/installation.ts'
import type { Log } from '../../process/log.ts'
import type { Thread } from '../../process/threads/thread.ts'
import { Connection, corrupted, type FileKind, FileLock, prepareFile, toOpeningFailure } from './database.ts'
import { FileThread, StoreFile } from './threads.ts'

/** The file of a store. */
export interface SqliteStoreOptions {
  readonly file: string
  /** The installation that the file must belong to. Absent: any. */
  readonly installation?: Installation
  readonly log: Log
}

/** An open file: its writer in a thread, and a connection of this thread. */
export interface OpenedFile {
  readonly file: StoreFile
  readonly writer: FileThread
  /** The connection of this thread. It is closed last. */
  readonly connection: Connection
  /** Closes the file and its connections in the right order. */
  readonly closing: AsyncDisposableStack
}

/**
 * Opens a file, which is created if needed, and its writer: `script` in `thread`, which serves the calls `ping` and
 * `corruptionSeenAtStart`. `migrate` changes a prepared file before it is used.
 * @throws {Error} the file is in use, corrupted, of another kind or installation, or of a newer version
 * @throws {Unfit} the storage fails
 */
export async function openFile(
  { file: path, installation, log }: SqliteStoreOptions,
  { kind, thread, script, migrate }: { kind: FileKind; thread: Thread; script: URL; migrate?: () => Promise<void> },
): Promise<OpenedFile> {
  await using opening = new AsyncDisposableStack()
  const lock = opening.use(new FileLock(path))
  prepareFile(path, { kind, lock, installation })
  const file = new StoreFile({ path, what: `The ${kind.name}`, log })
  try {
    await migrate?.()
    // This connection retains the log until the end is recorded: a connection uses the log from its first read on.
    const connection = opening.use(new Connection(path, { readOnly: false }))
    connection.prepare('SELECT 1 FROM sqlite_schema').get()
    opening.defer(() => lock.noteClosed(connection.database))
    const writer = opening.use(new FileThread(thread, script, file))
    await writer.call('ping', [])
    lock.noteOpen()
    const corruption = await writer.call<string | null>('corruptionSeenAtStart', [])
    if (corruption !== null) throw corrupted(path, corruption)
    return { file, writer, connection, closing: opening.move() }
  } catch (error) {
    throw toOpeningFailure(path, file.toProblem(error))
  }
}
