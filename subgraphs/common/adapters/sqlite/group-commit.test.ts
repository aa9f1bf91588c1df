import { describe, expect, it } from 'vitest'
import { StorageFailure } from './database.ts'
import { GroupCommit } from './group-commit.ts'

/**
 * A fake of SQLite's transactions; `failAt` makes the next statement of this name fail with an extended result code.
 */
class FakeDatabase {
  isTransaction = false
  readonly log: string[] = []
  readonly failures = new Map<string, number>()

  exec(sql: string): void {
    this.log.push(sql)
    const errcode = this.failures.get(sql)
    if (errcode !== undefined) {
      this.failures.delete(sql)
      throw Object.assign(new Error(`code ${errcode}`), { errcode })
    }
    this.isTransaction = sql.startsWith('BEGIN')
  }
}

const FULL = 13
const IOERR_WRITE = 778
const IOERR_FSYNC = 1034
const CONSTRAINT_UNIQUE = 2067

describe('Group commit', () => {
  it('is one transaction', () => {
    const database = new FakeDatabase()
    const commits = new GroupCommit(database)
    commits.batch(() => {
      commits.write(() => database.log.push('a'))
      commits.write(() => database.log.push('b'))
    })
    expect(database.log).toEqual(['BEGIN IMMEDIATE', 'a', 'b', 'COMMIT'])
  })

  it('without a write commits nothing', () => {
    const database = new FakeDatabase()
    new GroupCommit(database).batch(() => undefined)
    expect(database.log).toEqual([])
  })

  for (const { what, errcode } of [
    { what: 'a full disk', errcode: FULL },
    { what: 'a failed write', errcode: IOERR_WRITE },
  ]) {
    it(`fails as a whole after ${what} at the commit, and the next one works`, () => {
      const database = new FakeDatabase()
      const commits = new GroupCommit(database)
      database.failures.set('COMMIT', errcode)
      const batch = () => commits.batch(() => commits.write(() => undefined))
      expect(batch).toThrow(StorageFailure)
      expect(database.log).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'])
      expect(batch).not.toThrow()
    })
  }

  it('fails as a whole when the storage fails midway, even if SQLite has rolled back already', () => {
    const database = new FakeDatabase()
    const commits = new GroupCommit(database)
    const later: unknown[] = []
    const fail = () => {
      database.isTransaction = false
      throw Object.assign(new Error('full'), { errcode: FULL })
    }
    expect(() =>
      commits.batch(() => {
        commits.write(() => undefined)
        expect(() => commits.write(fail)).toThrow('full')
        expect(() => commits.write(() => later.push('ran'))).toThrow(StorageFailure)
      }),
    ).toThrow(StorageFailure)
    expect(later).toEqual([])
    expect(database.log).toEqual(['BEGIN IMMEDIATE'])
  })

  it('continues after a write that only failed itself', () => {
    const database = new FakeDatabase()
    const commits = new GroupCommit(database)
    commits.batch(() => {
      for (const error of [new TypeError('wrong target'), Object.assign(new Error('unique'), { errcode: CONSTRAINT_UNIQUE })]) {
        expect(() =>
          commits.write(() => {
            throw error
          }),
        ).toThrow(error)
      }
      commits.write(() => undefined)
    })
    expect(database.log).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
  })

  it('is refused permanently after a failed fsync, since another might succeed without having written', () => {
    const database = new FakeDatabase()
    const commits = new GroupCommit(database)
    database.failures.set('COMMIT', IOERR_FSYNC)
    const batch = () => commits.batch(() => commits.write(() => undefined))
    expect(batch).toThrow(StorageFailure)
    database.log.length = 0
    expect(() => commits.batch(() => expect(() => commits.write(() => undefined)).toThrow(StorageFailure))).toThrow(StorageFailure)
    expect(database.log).toEqual([])
  })
})
