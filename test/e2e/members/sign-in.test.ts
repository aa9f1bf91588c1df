import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Browser } from '../../support/browser.ts'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { MemberIssuer } from '../../support/processes/member-issuer.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const VIEWER = `{ viewer { id name scopes last4 organization { id }
  member { id role email name apiKey { id } memberships { organizationId role } } } }`

describe('Sign-in by OpenID Connect', () => {
  let issuer: MemberIssuer
  let engine: MockEngine
  let service: Service
  let operator: Caller
  beforeAll(async () => {
    issuer = await MemberIssuer.start()
    engine = await startMockEngine()
    service = await startEmbedded({ catalog: mockCatalog(engine.url), env: issuer.env })
    operator = createCaller(service, service.key)
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
    await issuer?.[Symbol.asyncDispose]()
  })

  const newTenant = () => newOrganization(operator, service)
  const queryAs = async (browser: Browser, query: string, variables = {}) => {
    const response = await fetch(service.graphql, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', cookie: browser.cookie },
      body: JSON.stringify({ query, variables }),
    })
    return response.json() as Promise<{ data?: Json; errors?: Json }>
  }
  const invite = async (by: Caller, email: string, role = 'viewer') => {
    const { status, body } = await by.rest('POST', '/v1/invitations', { email, role })
    expect(status).toBe(201)
    return body as { id: string; token: string; link: string }
  }
  let memberCount = 0
  const newName = () => `person${++memberCount}`

  it('is announced', async () => {
    expect(await (await fetch(`${service.rest}/session/options`)).json()).toEqual({ oidc: { name: 'Example' } })
  })

  it('with an invitation creates the first owner, who has a session cookie and no key', async () => {
    const tenant = await newTenant()
    const name = newName()
    const { body } = await operator.rest('POST', '/v1/invitations', {
      ...{ organization_id: tenant.organizationId, email: `${name}@example.org`, role: 'owner' },
    })
    expect(body.link).toBe(`${issuer.env.KIS_PUBLIC_URL}/sign-in?invitation=${body.token}`)
    const { path, browser } = await issuer.signIn(service, name, { invitation: body.token, return: '/people?tab=1' })
    expect(path).toBe('/people?tab=1')
    expect([...browser.cookies.keys()].filter((cookie) => cookie.startsWith('kis_'))).toEqual(['kis_session'])
    const { data } = await queryAs(browser, VIEWER)
    expect(data.viewer).toMatchObject({ scopes: ['ADMIN'], last4: '', organization: { id: tenant.organizationId } })
    expect(data.viewer.member).toMatchObject({ role: 'OWNER', email: `${name}@example.org`, name, apiKey: { id: data.viewer.id } })
    expect(data.viewer.member.memberships).toEqual([{ organizationId: tenant.organizationId, role: 'OWNER' }])
    const listed = await tenant.rest('GET', '/v1/members')
    expect(listed.body.data).toMatchObject([{ id: data.viewer.member.id, role: 'owner', key_id: data.viewer.id }])
    // The key of a person is not among those that have a secret.
    expect((await tenant.rest('GET', '/v1/keys')).body.data.map(({ id }: { id: string }) => id)).not.toContain(data.viewer.id)
  })

  it('with an uninvited or unverified address, or the invitation of another person, opens no session', async () => {
    const tenant = await newTenant()
    const [name, other] = [newName(), newName()]
    const { token } = await invite(tenant, `${name}@example.org`)
    for (const { login, query, error } of [
      { login: name, query: {}, error: 'not_a_member' },
      { login: other, query: { invitation: token }, error: 'invitation_invalid' },
      { login: other, query: { invitation: `kis_inv_${'A'.repeat(43)}` }, error: 'invitation_invalid' },
      { login: other, query: { organization: tenant.organizationId }, error: 'not_a_member' },
    ]) {
      const { path, browser } = await issuer.signIn(service, login, query as Record<string, string>)
      expect(path).toBe(`/sign-in?error=${error}`)
      expect(browser.cookies.has('kis_session')).toBe(false)
    }
    issuer.members.set(name, { email_verified: false })
    expect((await issuer.signIn(service, name, { invitation: token })).path).toBe('/sign-in?error=email_not_verified')
    issuer.members.set(name, { email: `${name.toUpperCase()}@Example.org` })
    expect((await issuer.signIn(service, name, { invitation: token })).path).toBe('/home')
  })

  it('assigns people to organizations by claims, with the role of their groups', async () => {
    const tenant = await newTenant()
    const name = newName()
    issuer.members.set(name, { kis_organization: tenant.organizationId, groups: ['everybody', 'staff'] })
    const { browser } = await issuer.signIn(service, name)
    expect((await queryAs(browser, VIEWER)).data.viewer.member).toMatchObject({ role: 'EDITOR' })
    issuer.members.set(newName(), { kis_organization: 'org_00000000000000000000000000000000', groups: 'leads' })
    expect((await issuer.signIn(service, `person${memberCount}`)).path).toBe('/sign-in?error=not_a_member')
  })

  it('applies a change of role, and a removal, to the session of the person', async () => {
    const tenant = await newTenant()
    const name = newName()
    const { token } = await invite(tenant, `${name}@example.org`, 'viewer')
    const { browser } = await issuer.signIn(service, name, { invitation: token })
    const { id } = (await queryAs(browser, VIEWER)).data.viewer.member
    const create = 'mutation { createApiKey(input: { name: "mine" }) { key apiKey { id } } }'
    expect((await queryAs(browser, create)).errors[0].extensions.code).toBe('PERMISSION_DENIED')

    expect((await tenant.rest('PATCH', `/v1/members/${id}`, { role: 'admin' })).body).toMatchObject({ id, role: 'admin' })
    let created: Json
    await eventually(async () => {
      created = (await queryAs(browser, create)).data?.createApiKey
      return Boolean(created)
    })
    expect((await tenant.rest('PATCH', `/v1/members/${id}`, { role: 'owner' })).body).toMatchObject({ role: 'owner' })
    expect((await tenant.rest('DELETE', `/v1/members/${id}`)).body.error.code).toBe('in_use')
    const other = newName()
    await issuer.signIn(service, other, { invitation: (await invite(tenant, `${other}@example.org`, 'owner')).token })

    const removed = await tenant.rest('DELETE', `/v1/members/${id}`)
    expect(removed.body).toMatchObject({ id, object: 'member', deleted: true, created_key_ids: [created.apiKey.id] })
    await eventually(async () => (await queryAs(browser, VIEWER)).errors?.[0].extensions.code === 'INVALID_API_KEY')
    expect((await issuer.signIn(service, name)).path).toBe('/sign-in?error=not_a_member')
    // What they created is the organization's, until somebody revokes it.
    expect((await createCaller(service, created.key).rest('GET', '/v1/models')).status).toBe(200)
    await tenant.rest('DELETE', `/v1/members/${id}?revoke_created_keys=true`)
    await eventually(async () => (await createCaller(service, created.key).rest('GET', '/v1/models')).status === 401)
  })

  it('shows a person of two organizations one at a time, who switches by signing in again', async () => {
    const [one, two] = [await newTenant(), await newTenant()]
    const name = newName()
    const first = await issuer.signIn(service, name, { invitation: (await invite(one, `${name}@example.org`)).token })
    const { path, browser } = await issuer.signIn(
      service,
      name,
      { invitation: (await invite(two, `${name}@example.org`)).token },
      first.browser,
    )
    expect(path).toBe('/home')
    expect((await queryAs(browser, VIEWER)).data.viewer.organization.id).toBe(two.organizationId)
    await issuer.signIn(service, name, { organization: one.organizationId }, browser)
    const { viewer } = (await queryAs(browser, VIEWER)).data
    expect(viewer.organization.id).toBe(one.organizationId)
    expect(viewer.member.memberships).toHaveLength(2)
    // The sessions that this browser had before are over.
    expect((await two.graphql('{ sessions { edges { node { id } } } }')).data.sessions.edges).toEqual([])
  })

  it('refuses a return without its start, a repeated one, and one with another state', async () => {
    const tenant = await newTenant()
    const name = newName()
    await issuer.signIn(service, name, { invitation: (await invite(tenant, `${name}@example.org`)).token })
    const browser = new Browser()
    const back = await issuer.logIn(service, browser, name)
    const flow = browser.cookies.get('kis_sign_in')!

    const otherBrowser = new Browser()
    expect((await otherBrowser.send(back)).headers.get('location')).toBe('/sign-in?error=expired')
    const wrong = new URL(back)
    wrong.searchParams.set('state', 'another')
    otherBrowser.cookies.set('kis_sign_in', flow)
    expect((await otherBrowser.send(wrong)).headers.get('location')).toBe('/sign-in?error=expired')
    otherBrowser.cookies.set('kis_sign_in', `${flow.slice(0, -2)}AA`)
    expect((await otherBrowser.send(back)).headers.get('location')).toBe('/sign-in?error=expired')

    expect((await browser.send(back)).headers.get('location')).toBe('/home')
    // Even with the cookie that the first time has deleted.
    otherBrowser.cookies.set('kis_sign_in', flow)
    expect((await otherBrowser.send(back)).headers.get('location')).toBe('/sign-in?error=issuer_refused')
    expect(otherBrowser.cookies.has('kis_session')).toBe(false)

    const unwilling = new URL(`${service.rest}/session/oidc/callback`)
    const begun = new Browser()
    const start = await begun.send(`${service.rest}/session/oidc`)
    const state = new URL(start.headers.get('location')!).searchParams.get('state')!
    unwilling.search = String(new URLSearchParams({ error: 'access_denied', state, iss: issuer.url }))
    expect((await begun.send(unwilling)).headers.get('location')).toBe('/sign-in?error=cancelled')
  })

  it('cannot be started by another site, nor redirect a person elsewhere', async () => {
    const crossSite = await new Browser().send(`${service.rest}/session/oidc?invitation=x`, {
      headers: { 'sec-fetch-site': 'cross-site' },
    })
    expect([crossSite.status, crossSite.headers.get('location')]).toEqual([303, '/sign-in'])
    const tenant = await newTenant()
    const name = newName()
    const { browser } = await issuer.signIn(service, name, { invitation: (await invite(tenant, `${name}@example.org`)).token })
    expect((await issuer.signIn(service, name, { return: '//evil.example/home' }, browser)).path).toBe('/home')
  })

  it('locks nobody with a key or a session out while the issuer is down', async () => {
    const tenant = await newTenant()
    const name = newName()
    const { browser } = await issuer.signIn(service, name, { invitation: (await invite(tenant, `${name}@example.org`)).token })
    const late = new Browser()
    const back = await issuer.logIn(service, late, name)
    await issuer.stop()
    expect((await late.send(back)).headers.get('location')).toBe('/sign-in?error=issuer_unavailable')
    expect((await tenant.rest('GET', '/v1/members')).status).toBe(200)
    expect((await queryAs(browser, VIEWER)).data.viewer.member.name).toBe(name)
  })
})
