import { describe, expect, it } from 'vitest'
import { parseElasticsearchUrl } from './elasticsearch-url.ts'

describe('KIS_ELASTICSEARCH_URL', () => {
  it.each([
    ['http://localhost:9200', ['http://localhost:9200/'], '', ''],
    ['https://kis:p%40s%2Cs%25:w@a:9200', ['https://a:9200/'], 'kis', 'p@s,s%:w'],
    ['https://kis:s3cret@a:9200, https://kis:s3cret@b:9200/es', ['https://a:9200/', 'https://b:9200/es'], 'kis', 's3cret'],
    ['https://a:9200,https://kis:s3cret@b:9200', ['https://a:9200/', 'https://b:9200/'], 'kis', 's3cret'],
  ])('%s names its nodes and one user', (text, nodes, username, password) => {
    expect(parseElasticsearchUrl(text)).toEqual({ nodes, username, password })
  })

  it.each([
    's3cret',
    'ftp://s3cret@a',
    'https://kis:s3,cret@a:9200',
    'https://kis:s3%cret@a:9200',
    'https://a:9200,',
    'https://a:9200 https://b:9200',
    'https://kis:s3cret@a:9200,https://kis:other-s3cret@b:9200',
  ])('%s is a problem that is reported without the URL', (text) => {
    expect(() => parseElasticsearchUrl(text)).toThrow(/^(?:must be http|names several users)/)
    expect(() => parseElasticsearchUrl(text)).not.toThrow(/s3|cret/)
  })
})
