import { CHAT } from 'resuming-client'

const CREATE = `mutation Create($input: CreateCollectionInput!) { createCollection(input: $input) { collection { id code } } }`
const LIST = `query List { collections(first: 10) { edges { node { id code } } } }`

/**
 * What each client does on a page. It gives `run(text, variables)`, and `subscribe(text, variables, sink)` by the client
 * of `sockets`. `window.page` has what the test reads.
 */
export async function work({ run, subscribe, sockets }, { code, model, embeddingModel }) {
  const page = { codes: [], text: '', breaks: 0, done: false, error: null }
  window.page = page
  sockets.on('closed', () => {
    page.breaks++
  })
  try {
    await run(CREATE, { input: { code, name: code, embeddingModel } })
    const { collections } = await run(LIST, {})
    page.codes = collections.edges.map(({ node }) => node.code)
    const request = { model, messages: [{ role: 'user', content: 'Letters, please.' }] }
    await new Promise((resolve, reject) => {
      subscribe(
        CHAT,
        { input: { request } },
        {
          next({ chatCompletion }) {
            page.text += chatCompletion.textDelta
          },
          error: reject,
          complete: resolve,
        },
      )
    })
    page.done = true
  } catch (error) {
    page.error = String(error)
  }
}
