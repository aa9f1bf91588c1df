/** A browser without pages: it keeps cookies, follows redirects and fills in forms. */
export class Browser {
  /** Of all hosts together: the tests' hosts are one host with several ports, which share cookies in real browsers, too. */
  readonly cookies = new Map<string, string>()

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  /** One request, without following a redirect. */
  async send(url: string | URL, { headers, ...init }: RequestInit = {}): Promise<Response> {
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: { ...(this.cookies.size > 0 && { cookie: this.cookie }), ...(headers as Record<string, string>) },
    })
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';')
      const [name, ...value] = pair!.split('=')
      const isOver = attributes.some((text) => /^ *max-age=0$/i.test(text) || /^ *expires=thu, 01 jan 1970/i.test(text))
      if (isOver) this.cookies.delete(name!)
      else this.cookies.set(name!, value.join('='))
    }
    return response
  }

  /**
   * Logs in as `login` and agrees at an `oidc-provider`, as a person does, until the issuer sends the browser to an address
   * that begins with `back`. Gives that address, which the browser has not opened.
   */
  async logIn(start: string | URL, { login, back }: { readonly login: string; readonly back: string }): Promise<URL> {
    let url = new URL(start)
    let form: URLSearchParams | undefined
    for (let step = 0; step < 20; step++) {
      const response = await this.send(url, form && { method: 'POST', body: form })
      const location = response.headers.get('location')
      if (location) {
        url = new URL(location, url)
        form = undefined
        if (url.href.startsWith(back)) return url
        continue
      }
      const page = await response.text()
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
      const action = /action="([^"]+)"/.exec(page)?.[1]
      if (!prompt || !action) throw new Error(`${response.status}: ${page.slice(0, 500)}`)
      url = new URL(action, url)
      form = new URLSearchParams({ prompt, ...(prompt === 'login' && { login, password: 'anything' }) })
    }
    throw new Error('too many steps')
  }
}
