/** The base address of the service, without `/v1`. */
export const URL = process.env.KIS_URL
export const KEY = process.env.KIS_API_KEY
export const MODEL = 'gpt-4o-mini'
export const EMBEDDING_MODEL = 'e5-small-ar-en'
export const TEXTS = ['Annual leave is thirty days.', 'الإجازة السنوية ثلاثون يوما.']
/**
 * The time after which a client with a timeout must give up, and the mock vendor is far from an answer. By then the
 * service has asked the vendor, on a busy machine too.
 */
export const TIMEOUT_MS = 4_000
export const WEATHER = 'thirty-one degrees'

/**
 * Runs the cases one after the other, each with a prompt that names the case and the client, and prints what each
 * returned or threw as a line of JSON.
 */
export async function runCases(cases) {
  for (const [name, run] of Object.entries(cases)) {
    let outcome
    try {
      outcome = { value: await run(`${name}, asked by ${process.env.KIS_CLIENT}`) }
    } catch (error) {
      outcome = { error: error instanceof Error ? error.stack : String(error) }
    }
    console.log(JSON.stringify([name, outcome]))
  }
  process.exit(0)
}

/** Returns what the client throws. */
export async function thrown(run) {
  try {
    await run()
  } catch (error) {
    const name = error.name === 'Error' ? error.constructor.name : error.name
    return { name, status: error.status ?? error.statusCode ?? null, code: readCode(error), message: String(error.message) }
  }
  throw new Error('the request succeeded')
}

/** The service's code, where each client puts it. */
function readCode(error) {
  const graphql = (error.errors ?? error.graphQLErrors)?.[0]?.extensions?.code
  const body = error.data?.error ?? error.error?.error
  return graphql ?? body?.details?.error_code ?? body?.code ?? error.code ?? null
}

/** The three errors that every client must show: of the key, of the model, and of the vendor. */
export async function thrownErrors(request) {
  return {
    key: await thrown(() => request({ key: 'kis_live_wrong', model: MODEL, prompt: 'chat' })),
    model: await thrown(() => request({ key: KEY, model: 'no-such-model', prompt: 'chat' })),
    vendor: await thrown(() => request({ key: KEY, model: MODEL, prompt: `refused, asked by ${process.env.KIS_CLIENT}` })),
  }
}

/** Puts the pieces of a stream together. */
export async function collect(pieces) {
  const texts = []
  for await (const piece of pieces) if (piece) texts.push(piece)
  return { text: texts.join(''), pieces: texts.length }
}

export async function* mapped(pieces, read) {
  for await (const piece of pieces) yield read(piece)
}
