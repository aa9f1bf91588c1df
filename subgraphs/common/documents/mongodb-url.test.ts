import { describe, expect, it } from 'vitest'
import { parseMongoUrl } from './mongodb-url.ts'

describe('KIS_MONGODB_URL', () => {
  it.each([
    ['mongodb://localhost', 'kis'],
    ['mongodb://localhost:27017/', 'kis'],
    ['mongodb://localhost/prod', 'prod'],
    ['mongodb://a:1,b:2,c:3/prod?replicaSet=rs0&authSource=admin', 'prod'],
    ['mongodb+srv://user:p%40ss%2Fword@cluster.example.com/?tls=true', 'kis'],
  ])('%s means databases that begin with %s', (url, name) => {
    expect(parseMongoUrl(url)).toEqual({ url, name })
  })

  it.each([
    'http://user:s3cret@localhost',
    'mongodb://',
    'mongodb://user:s3c@ret@localhost',
    'mongodb://user:s3c/ret@localhost/kis',
    'mongodb://user:s3c?ret@localhost/kis',
    'mongodb://localhost/s3cret.name',
    `mongodb://localhost/${'s3cret'.repeat(7)}`,
  ])('%s is a problem that is reported without the URL', (url) => {
    expect(() => parseMongoUrl(url)).toThrow(/^(?:is not like|names a database)/)
    expect(() => parseMongoUrl(url)).not.toThrow(/s3c|ret/)
  })
})
