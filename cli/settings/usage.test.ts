import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { helpFor } from './usage.ts'

const KIS = fileURLToPath(new URL('../kis.js', import.meta.url))
const COMMANDS = [
  ...new Set(
    helpFor([])!
      .match(/^kis \S+/gm)!
      .map((start) => start.slice('kis '.length)),
  ),
].filter((command) => command !== 'help')

const kis = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [KIS, ...args], { encoding: 'utf8', env: { PATH: process.env.PATH } })
  return { status, stdout, stderr }
}

describe('kis command line', () => {
  it.each(COMMANDS)('has help for the command %s alone', (command) => {
    const help = helpFor([command, '--help'])!
    expect(help.match(/^kis \S+/gm)!.every((start) => start === `kis ${command}`)).toBe(true)
    expect(helpFor([command, 'check', '-h'])).toBe(help)
    expect(help).not.toMatch(/\n\n/)
  })

  it('prints help without running anything', () => {
    expect(execFileSync(process.execPath, [KIS, 'catalog', 'check', '--help'], { encoding: 'utf8' })).toBe(
      `${helpFor(['catalog', '-h'])}\n`,
    )
    expect(kis('verify', '--help')).toEqual({ status: 0, stdout: `${helpFor(['verify', '-h'])}\n`, stderr: '' })
  })

  it.each([
    [['nonsense'], 'kis has no command nonsense. `kis help` lists the commands.'],
    [['nonsense', '--help'], 'kis has no command nonsense. `kis help` lists the commands.'],
    [['verfy'], 'kis has no command verfy; did you mean verify? `kis help` lists the commands.'],
    [['catalog', 'chek'], 'kis catalog takes `check` and at most one file. See `kis catalog --help`.'],
    [['config', 'check', 'nobody'], expect.stringMatching(/^kis config takes .*rest-adapter.*--help`\.$/)],
    [['export'], 'kis export takes the name of a file first. See `kis export --help`.'],
    [['verify', '--nonsense'], expect.stringMatching(/--nonsense.* See `kis verify --help`\.$/)],
    [['start', 'nobody'], expect.stringMatching(/^kis start takes at most one role: .*`kis start --help`\.$/)],
  ])('explains in one line what is wrong with %j', (args, said) => {
    const { status, stdout, stderr } = kis(...args)
    expect([status, stdout, stderr.trimEnd()]).toEqual([2, '', said])
  })
})
