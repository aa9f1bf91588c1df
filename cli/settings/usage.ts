import { findNearest } from './environment.ts'
import { ROLES } from './roles.ts'

/** Usage of each command, with its options. A line that starts with `kis` starts a command. */
const USAGE = `kis start            the whole service in one process
kis start <role>     one service alone: ${ROLES.join(', ')}
kis migrate          migrate the stored documents to this version, as a start does, and exit

kis verify           check the files, the ledger, the stored bytes and the chunk index
    --repair         delete what is extra in the index, and restore what is missing
    --collection ID  the index of one collection only
    --json           lines of JSON instead of text
kis accept-loss LOG  start again without a write-ahead log that is lost (billing.sqlite-wal)
kis reindex          rebuild the chunk index while the service runs, then verify it
    --json           lines of JSON instead of text
kis secret rotate    make all data depend on a new secret, while the service is stopped; run it again if it is
                     interrupted
kis export FILE      write all data, of a running service too, into one archive
    --organization ID  only that of one organization
    --with-secret    include the secret, or with --organization the headers of MCP servers, encrypted with
                     KIS_BACKUP_PASSPHRASE
    --check          read the archive after it is written, and check whether it is complete
kis import FILE      put an archive into empty stores, or one organization into an installation; stop the service, unless
                     it is on MongoDB; run it again if it is interrupted
    --as ID          one organization under another id; new: under a newly created one
    --check          read and check everything, and write nothing

kis catalog check    which engines and models of the catalog are on, and why the others are off
    FILE             default: KIS_CATALOG, or catalog.yaml

kis config check     list all errors of the configuration, without starting anything
    ROLE             as this role would read it

kis version          which version of the service, the API and the schema this is
kis help             this list; \`kis <command> --help\` for one command

Configuration comes from the environment; docs/operate/configuration.md lists it.`

/** An error in the arguments. Its message is one line. */
export class UsageError extends Error {
  readonly exitCode = 2
}

const HELP = ['--help', '-h']

/**
 * Returns the help text that the arguments request, or null if they run a command.
 * @throws {UsageError} the first argument is not a command
 */
export function helpFor(args: readonly string[]): string | null {
  const [command] = args
  if (command === undefined || command === 'help' || HELP.includes(command)) return USAGE
  const blocks = `\n${USAGE}`
    .split('\nkis ')
    .slice(1)
    .map((block) => `kis ${block.trimEnd()}`)
  const ofCommand = blocks.filter((block) => block.split(/\s/, 2)[1] === command)
  if (ofCommand.length === 0 && command !== '--version') throw unknownCommand(command, blocks)
  return args.some((argument) => HELP.includes(argument)) ? ofCommand.join('\n').split('\n\n')[0]! : null
}

function unknownCommand(command: string, blocks: readonly string[]): UsageError {
  const nearest = findNearest(command, new Set(blocks.map((block) => block.split(/\s/, 2)[1]!)))
  return new UsageError(`kis has no command ${command}${nearest ? `; did you mean ${nearest}?` : '.'} \`kis help\` lists the commands.`)
}

/** Returns the error for arguments that a known command does not take. `problem` is a whole sentence. */
export function wrongArguments(command: string, problem: string): UsageError {
  return new UsageError(`${problem} See \`kis ${command} --help\`.`)
}
