// Runs in the browser. The key is kept for this tab alone, and is sent to this service alone.
const KEY = 'kis-key'
const key = sessionStorage.getItem(KEY)
const form = document.querySelector('form')

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const given = form.elements.namedItem('key').value.trim()
  if (given) sessionStorage.setItem(KEY, given)
  else sessionStorage.removeItem(KEY)
  location.reload()
})

self.MonacoEnvironment = {
  getWorkerUrl: (_module, label) => document.querySelector(`meta[name="worker-${label}"]`).content,
}

if (key) {
  const authorization = () => ({ authorization: `Bearer ${key}` })
  const endpoint = `${location.origin}${location.pathname}`
  form.elements.namedItem('key').value = key
  self.YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), {
    title: 'GraphiQL',
    endpoint,
    additionalHeaders: authorization,
    subscriptionsProtocol: 'WS',
    subscriptionsEndpoint: endpoint.replace(/^http/, 'ws'),
    connectionParams: authorization,
    // An operation that was cut off may have cost money: it is not begun again by itself.
    retryAttempts: 0,
  })
}
