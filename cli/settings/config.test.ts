import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { apiKeyFrom } from '../../subgraphs/billing/accounts/domain/api-key.ts'
import { readConfig } from './config.ts'
import { checkConfig } from './config-check.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CATALOG = join(ROOT, 'catalog.yaml')
/** Variables of the commands, which a start does not read. */
const OF_COMMANDS = ['KIS_API_KEY', 'KIS_BACKUP_PASSPHRASE']

describe('Configuration', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kis-config-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const read = (env: Readonly<Record<string, string>>, role?: Parameters<typeof readConfig>[1]) =>
    readConfig({ KIS_DATA_DIR: folder, KIS_CATALOG: CATALOG, ...env }, role)
  /** Returns the lines of a start that must fail. */
  const problems = (...args: Parameters<typeof read>): readonly string[] => {
    try {
      read(...args)
    } catch (error) {
      return (error as Error).message.split('\n')
    }
    throw new Error('it did not fail')
  }

  it('reports every problem of every part once, without values that may be secret', () => {
    const wrong = {
      KIS_LOG_LEVEL: 'loud',
      PORT: '70000',
      KIS_DRAIN_MS: 'soon',
      KIS_MCP_HOSTS: 'a:1',
      KIS_CORS_ORIGINS: 'app.example.com',
      KIS_GATEWAY_URL: 'here',
      KIS_SECRET: 'hush',
      KIS_BOOTSTRAP_API_KEY: 'kis_live_hush',
      KIS_BOOTSTRAP_CREDIT_USD: 'ten',
      KIS_RETRY_BACKOFF_MS: '0',
      KIS_MONGODB_URL: 'mongodb://user:hu/sh@127.0.0.1/kis',
      KIS_EGRESS_ALLOW: 'user:hush@host:80,fine:80',
      KIS_LOCAL_MCP_SERVERS: 'host',
      KIS_ELASTICSEARCH_URL: 'hush',
      KIS_ELASTICSEARCH_PREFIX: '-',
      KIS_ELASTICSEARCH_SHARDS: '0',
      KIS_ELASTICSEARCH_REPLICAS: '-1',
      KIS_INTROSPECTION: 'maybe',
      KIS_TRUSTED_DOCUMENTS: join(folder, 'absent.json'),
      KIS_TRUSTED_DOCUMENTS_ONLY: 'maybe',
      KIS_CATALOG: join(folder, 'absent.yaml'),
    }
    const said = problems(wrong)
    const isAbout = (name: string) => (line: string) =>
      line.startsWith(`${name} `) || line.startsWith(`${name}: `) || line.startsWith(join(folder, 'absent.yaml'))
    for (const name of Object.keys(wrong)) expect(said.filter(isAbout(name)).length, name).toBeGreaterThan(0)
    expect(said).toHaveLength(Object.keys(wrong).length)
    expect(said.join()).not.toMatch(/hush|hu\/sh/)
  })

  it('requires the manifest for only-trusted documents, and reports other problems with it', () => {
    expect(problems({ KIS_TRUSTED_DOCUMENTS_ONLY: 'on', PORT: 'x' })).toEqual([
      expect.stringMatching(/^PORT /),
      'KIS_TRUSTED_DOCUMENTS_ONLY needs KIS_TRUSTED_DOCUMENTS',
    ])
  })

  it('requires both variables of OAuth, as URLs', () => {
    expect(problems({ KIS_OAUTH_ISSUER: 'https://login.example.com', PORT: 'x' })).toEqual([
      expect.stringMatching(/^PORT /),
      expect.stringMatching(/^KIS_OAUTH_ISSUER and KIS_OAUTH_RESOURCE need each other/),
    ])
    expect(problems({ KIS_OAUTH_ISSUER: 'login.example.com', KIS_OAUTH_RESOURCE: 'https://a.example/mcp?x=1' })).toEqual([
      expect.stringMatching(/^KIS_OAUTH_ISSUER must be/),
      expect.stringMatching(/^KIS_OAUTH_RESOURCE must be/),
    ])
    const addresses = { KIS_OAUTH_ISSUER: 'https://login.example.com', KIS_OAUTH_RESOURCE: 'https://a.example/mcp' }
    expect(read({ ...addresses, KIS_OAUTH_KEY_CLAIM: '' }).settings.gateway.oauth).toEqual({
      issuer: 'https://login.example.com',
      resource: 'https://a.example/mcp',
      keyClaim: 'kis_api_key_id',
    })
    expect(read({ KIS_OAUTH_ISSUER: '', KIS_OAUTH_RESOURCE: '' }).settings.gateway.oauth).toBeNull()
  })

  it('requires the settings of OpenID Connect, and reads the roles of groups', () => {
    expect(problems({ KIS_OIDC_ISSUER: 'https://login.example.com', KIS_OIDC_CLIENT_ID: 'kis' })).toEqual([
      expect.stringMatching(/^KIS_OIDC_ISSUER needs KIS_OIDC_CLIENT_ID, and KIS_PUBLIC_URL/),
    ])
    expect(problems({ KIS_PUBLIC_URL: 'https://kis.example/portal', KIS_OIDC_SCOPES: 'email', KIS_OIDC_ROLES: 'staff=operator' })).toEqual([
      expect.stringMatching(/^KIS_PUBLIC_URL must be an address without a path/),
      expect.stringMatching(/^KIS_OIDC_SCOPES must contain openid/),
      expect.stringMatching(/^KIS_OIDC_ROLES must be pairs such as staff=editor/),
    ])
    const set = { KIS_OIDC_ISSUER: 'https://login.example.com/realm', KIS_OIDC_CLIENT_ID: 'kis', KIS_PUBLIC_URL: 'https://kis.example/' }
    expect(read({ ...set, KIS_OIDC_ROLES: 'staff=editor, admins=admin' }).settings.oidc).toEqual({
      ...{ issuer: 'https://login.example.com/realm', clientId: 'kis', clientSecret: null, name: 'login.example.com' },
      ...{ scopes: 'openid email profile', organizationClaim: null, roleClaim: null, publicUrl: 'https://kis.example' },
      roles: new Map([
        ['staff', 'editor'],
        ['admins', 'admin'],
      ]),
    })
    expect(read({}).settings.oidc).toBeNull()
  })

  it('sets the defaults and values of billing', () => {
    expect(read({}).settings.billing).toEqual({
      dataDirectory: folder,
      mongodb: null,
      bootstrapApiKey: null,
      publicUrl: null,
      bootstrapCreditNanoUsd: 100_000_000_000n,
      egressAllowed: new Set(),
      retryBackoffMs: 1_000,
    })
    const key = apiKeyFrom(randomBytes(32))
    const set = {
      KIS_BOOTSTRAP_API_KEY: key,
      KIS_BOOTSTRAP_CREDIT_USD: '0.5',
      KIS_MONGODB_URL: 'mongodb://127.0.0.1/main',
      KIS_EGRESS_ALLOW: 'hooks.internal:8080',
      KIS_PUBLIC_URL: 'https://kis.example/',
      KIS_RETRY_BACKOFF_MS: '5',
    }
    expect(read(set).settings.billing).toEqual({
      dataDirectory: folder,
      mongodb: { url: set.KIS_MONGODB_URL, database: 'main_billing' },
      bootstrapApiKey: key,
      bootstrapCreditNanoUsd: 500_000_000n,
      egressAllowed: new Set(['hooks.internal:8080']),
      publicUrl: 'https://kis.example',
      retryBackoffMs: 5,
    })
  })

  it.each(['-1', '1e3', 'ten', '1.0000000001', '9000000.01'])('refuses %s as credit', (credit) =>
    expect(problems({ KIS_BOOTSTRAP_CREDIT_USD: credit })).toEqual([expect.stringMatching(/^KIS_BOOTSTRAP_CREDIT_USD /)]),
  )

  it('reports missing settings of a role alone, and a data directory that preserves no secret, together', () => {
    expect(problems({ KIS_LOG_LEVEL: 'loud' }, 'billing')).toEqual([
      expect.stringMatching(/^KIS_LOG_LEVEL /),
      expect.stringMatching(/^KIS_SECRET is missing/),
    ])
    const file = join(folder, 'file')
    writeFileSync(file, '')
    expect(problems({ KIS_LOG_LEVEL: 'loud', KIS_DATA_DIR: join(file, 'data') })).toEqual([
      expect.stringMatching(/^KIS_LOG_LEVEL /),
      expect.stringMatching(/^KIS_DATA_DIR .*KIS_SECRET/),
    ])
  })

  it('names the file of a truncated secret', () => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'secret'), 'short')
    expect(problems({})).toEqual([expect.stringContaining(join(folder, 'secret'))])
  })

  it('treats an empty variable as unset', () => {
    const { port, logLevel, settings } = read({ PORT: '', KIS_LOG_LEVEL: '', KIS_ELASTICSEARCH_URL: '', KIS_SECRET: '' })
    expect([port, logLevel, settings.knowledge.elasticsearch]).toEqual([undefined, 'warn', null])
  })

  it.each([{}, { KIS_DATA_DIR: '', KIS_CATALOG: '' }])(
    'uses one data directory and one catalog for all parts if %j does not set them',
    (env) => {
      const { dataDirectory, settings } = readConfig({ KIS_SECRET: 's'.repeat(32), ...env })
      const { billing, inference, knowledge } = settings
      const folders = [dataDirectory, billing, inference, knowledge].map((it) => (typeof it === 'string' ? it : it.dataDirectory))
      expect(new Set(folders)).toEqual(new Set([join(process.cwd(), 'data')]))
      expect(inference.catalog).toBe(settings.catalog)
    },
  )

  it('reads a setting from a file, including those of the catalog, and names an unreadable file', () => {
    const file = (name: string, text: string) => {
      const path = join(folder, name)
      writeFileSync(path, text)
      return path
    }
    const secret = 's'.repeat(40)
    expect(new TextDecoder().decode(read({ KIS_SECRET_FILE: file('secret-file', `${secret}\n`) }).secret)).toBe(secret)
    const catalog = file('catalog.yaml', `engines:\n  own: { kind: openai, base_url: "\${OWN_ENGINE}", badge: local }\n`)
    const { settings, ignored } = read({ KIS_CATALOG: catalog, OWN_ENGINE_FILE: file('engine', 'http://127.0.0.1:1') })
    expect([settings.catalog.engines[0]!.on, ignored]).toEqual([true, []])
    const url = file('mongodb-url', 'mongodb://127.0.0.1:27017/other\n')
    expect(read({ KIS_MONGODB_URL_FILE: url }).settings.knowledge.mongodb?.database).toBe('other_knowledge')
    expect(problems({ KIS_SECRET_FILE: join(folder, 'absent'), KIS_ELASTICSEARCH_URL_FILE: file('large', 'x'.repeat(65_537)) })).toEqual([
      expect.stringMatching(/^KIS_SECRET_FILE names a file that cannot be read: ENOENT/),
      expect.stringMatching(/^KIS_ELASTICSEARCH_URL_FILE names a file that cannot be read: it has more than 65536 bytes$/),
    ])
    expect(problems({ KIS_SECRET: secret, KIS_SECRET_FILE: file('other', secret) })).toEqual([
      'KIS_SECRET and KIS_SECRET_FILE are both set: unset one',
    ])
  })

  it('is checked without a start: nothing is written, and all problems are reported', async () => {
    const env = { KIS_DATA_DIR: join(folder, 'new'), KIS_CATALOG: CATALOG }
    expect(await checkConfig(undefined, env)).toEqual({ code: 0, lines: expect.arrayContaining(['The configuration is valid.']) })
    expect(existsSync(join(folder, 'new'))).toBe(false)
    expect(await checkConfig('gateway', env)).toEqual({ code: 1, lines: [expect.stringMatching(/^KIS_SECRET is missing/)] })
    expect(await checkConfig(undefined, { ...env, PORT: 'x', KIS_PORTAL: 'y' })).toEqual({
      code: 1,
      lines: [expect.stringMatching(/^PORT /), expect.stringMatching(/^KIS_PORTAL /)],
    })
  })

  it('names unknown variables with the nearest known one, beside the problems', () => {
    const typo = 'KIS_LOG_LEVLE is not a setting of this version and is ignored; did you mean KIS_LOG_LEVEL?'
    expect(read({ KIS_LOG_LEVLE: 'debug' }).ignored).toEqual([typo])
    expect(problems({ KIS_LOG_LEVLE: 'debug', PORT: 'x' })).toEqual([expect.stringMatching(/^PORT /), typo])
    expect(read({ KIS_EGRESS_ALOW: 'a:1', KIS_PORT: '4000', KIS_OPENAI_API_KEY: 'k', KIS_SOMETHING_ELSE: '1' }).ignored).toEqual([
      expect.stringMatching(/^KIS_EGRESS_ALOW .* KIS_EGRESS_ALLOW\?$/),
      expect.stringMatching(/^KIS_PORT .* PORT\?$/),
      expect.stringMatching(/^KIS_OPENAI_API_KEY .* OPENAI_API_KEY\?$/),
      'KIS_SOMETHING_ELSE is not a setting of this version and is ignored',
    ])
  })

  it('knows the variables of the catalog, and ignores those of other tools', () => {
    const catalog = join(folder, 'catalog.yaml')
    writeFileSync(catalog, `engines:\n  own: { kind: openai, base_url: "\${KIS_OWN_ENGINE}", badge: local }\n`)
    const others = {
      KIS_API_KEY: 'kis_live_',
      KIS_URL: 'http://127.0.0.1:4000',
      KIS_TEST_MONGODB_URL: 'mongodb://127.0.0.1',
      KIS_REQUIRE_ENGINES: '1',
      KIS_PORT: 'tcp://10.0.0.1:4000',
      KIS_GATEWAY_SERVICE_HOST: '10.0.0.1',
      KIS_GATEWAY_SERVICE_PORT_HTTP: '4000',
      KIS_PORT_4000_TCP_ADDR: '10.0.0.1',
    }
    expect(read({ KIS_CATALOG: catalog, KIS_OWN_ENGINE: 'http://127.0.0.1:1', ...others }).ignored).toEqual([])
  })

  it('knows every variable that the code reads, and the documentation has each', async () => {
    const accessed = new Set<string>()
    const env: NodeJS.ProcessEnv = new Proxy({ KIS_DATA_DIR: folder, KIS_CATALOG: CATALOG } as NodeJS.ProcessEnv, {
      get(target, name) {
        accessed.add(String(name))
        return target[String(name)]
      },
    })
    readConfig(env)
    const known = [...accessed].filter((name) => name.startsWith('KIS_') && !name.endsWith('_FILE')).sort()

    const inSources = new Set<string>()
    for (const part of ['cli', 'gateway', 'rest-adapter', 'subgraphs']) {
      for (const file of await readdir(join(ROOT, part), { recursive: true })) {
        if (!/\.[jt]s$/.test(file) || /\.test\.ts$|test-support/.test(file)) continue
        const source = readFileSync(join(ROOT, part, file), 'utf8')
        for (const [, name] of source.matchAll(/(?:\benv\.|['"{,] ?|^ +)(KIS_[A-Z_]+)\b/gm)) inSources.add(name!)
      }
    }
    expect([...inSources].filter((name) => !OF_COMMANDS.includes(name) && !name.endsWith('_FILE')).sort()).toEqual(known)

    const pages = ['configuration', 'stores'].map((page) => readFileSync(join(ROOT, `docs/operate/${page}.md`), 'utf8')).join('\n')
    const inTables = [...pages.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, names]) => names!.match(/KIS_[A-Z_]+/g) ?? [])
    expect(inTables.sort()).toEqual(known)
  })
})
