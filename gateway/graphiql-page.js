// Runs in the browser. The key is kept for this tab alone, and is sent to this service alone. Without one, the session of
// the portal counts.
const KEY = 'kis-key'
const key = sessionStorage.getItem(KEY)
const form = document.querySelector('form')

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const entered = form.elements.namedItem('key').value.trim()
  if (entered) sessionStorage.setItem(KEY, entered)
  else sessionStorage.removeItem(KEY)
  location.reload()
})

self.MonacoEnvironment = {
  getWorkerUrl: (_module, label) => document.querySelector(`meta[name="worker-${label}"]`).content,
}

const endpoint = `${location.origin}${location.pathname}`

function start(authorization) {
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

if (key) {
  form.elements.namedItem('key').value = key
  start(() => ({ authorization: `Bearer ${key}` }))
} else {
  const body = '{"query":"query SignedIn { viewer { id } }"}'
  fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    .then(({ ok }) => ok && start(() => ({})))
    // Without an answer the form stays.
    .catch(() => undefined)
}
