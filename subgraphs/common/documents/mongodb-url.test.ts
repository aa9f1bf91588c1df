import { describe, expect, it } from 'vitest'
import { mongoDatabaseOf } from './mongodb-url.ts'

describe('KIS_MONGODB_URL', () => {
  it.each([
    ['mongodb://localhost', 'kis_billing'],
    ['mongodb://localhost:27017/', 'kis_billing'],
    ['mongodb://localhost/prod', 'prod_billing'],
    ['mongodb://a:1,b:2,c:3/prod?replicaSet=rs0&authSource=admin', 'prod_billing'],
    ['mongodb+srv://user:p%40ss%2Fword@cluster.example.com/?tls=true', 'kis_billing'],
  ])('%s means the database %s', (url, database) => {
    const problems: string[] = []
    expect(mongoDatabaseOf(url, 'billing', problems)).toEqual({ url, database })
    expect(problems).toEqual([])
  })

  it('means SQLite when it is absent or empty', () => {
    expect([mongoDatabaseOf(undefined, 'billing', []), mongoDatabaseOf('', 'billing', [])]).toEqual([null, null])
  })

  it.each([
    'http://user:s3cret@localhost',
    'mongodb://',
    'mongodb://user:s3c@ret@localhost',
    'mongodb://user:s3c/ret@localhost/kis',
    'mongodb://user:s3c?ret@localhost/kis',
    'mongodb://localhost/s3cret.name',
    `mongodb://localhost/${'s3cret'.repeat(7)}`,
  ])('%s is a problem that does not quote it', (url) => {
    const problems: string[] = []
    expect(mongoDatabaseOf(url, 'billing', problems)).toBeNull()
    expect(problems).toEqual([expect.stringContaining('KIS_MONGODB_URL')])
    expect(problems.join()).not.toMatch(/s3c|ret/)
  })
})
