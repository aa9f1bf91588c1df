// Plain JavaScript, because Node 20 runs it.

/**
 * Flags that Node reads only when it starts. V8 lets the young generation of a heap grow to 96 MB or more on a large
 * machine, of each thread, and never gives that back; a chat takes the same CPU with 24 MB. And `collect-garbage.ts`
 * collects what a start leaves.
 */
const FLAGS = ['--max-semi-space-size=8', '--expose-gc']
/** glibc gives each thread an arena of its own, up to eight for each core, and what is free in one is of no use to others. */
const VARIABLES = { MALLOC_ARENA_MAX: '2' }

const FLAG_NAMES = FLAGS.map((flag) => flag.split('=', 1)[0])

/** The arguments and the environment of a Node that runs the service in little memory. What the operator has set stays. */
export const leanNode = {
  flags: [...process.execArgv, ...FLAGS.filter((_, index) => !isGiven(FLAG_NAMES[index]))],
  env: { ...VARIABLES, ...process.env },
}

/** Replaces this process, which keeps its id, by a lean one. Does nothing in one, nor where the system cannot (Windows). */
export function becomeLean() {
  if (FLAG_NAMES.every(isGiven) || !process.execve || process.platform === 'win32') return
  process.execve(process.execPath, [process.execPath, ...leanNode.flags, ...process.argv.slice(1)], leanNode.env)
}

function isGiven(name) {
  return [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')].some((given) => given.split('=', 1)[0] === name)
}
