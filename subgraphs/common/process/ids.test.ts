import { describe, expect, it } from 'vitest'
import { idSource, timeOfId } from './ids.ts'

function setUp() {
  let now = Date.parse('2026-11-21T08:00:00.000Z')
  const ids = idSource({ now: () => new Date(now), sleep: async () => undefined })
  const advance = (ms: number) => {
    now += ms
  }
  return { ids, now: () => now, advance }
}

describe('IDs', () => {
  it('contain their time and stay ordered, even within a millisecond and while the clock goes back a little', () => {
    const { ids, now, advance } = setUp()
    const generated = [ids('hold'), ids('hold')]
    expect(timeOfId(generated[0]!)).toBe(now())
    for (const ms of [1, -2_500, 1, 5_000]) {
      advance(ms)
      generated.push(ids('hold'), ids('hold'))
    }
    expect(generated.toSorted()).toEqual(generated)
    expect(new Set(generated).size).toBe(generated.length)
  })

  it('stay ordered in a burst of more than a millisecond can distinguish', () => {
    const { ids } = setUp()
    const generated = Array.from({ length: 10_000 }, () => ids('ent'))
    expect(generated.toSorted()).toEqual(generated)
  })

  it('follow a clock that was set back: a new ID is not dated an hour ahead', () => {
    const { ids, now, advance } = setUp()
    ids('hold')
    advance(-3_600_000)
    expect(timeOfId(ids('hold'))).toBe(now())
  })
})
