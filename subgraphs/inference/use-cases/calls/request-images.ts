import { refuse } from '../../../common/check.ts'
import { EgressError, type EgressFailure } from '../../../common/egress/egress.ts'
import { KisError, TooBusy } from '../../../common/errors.ts'
import { sizeText } from '../../../common/sizes.ts'
import type { Model } from '../../domain/catalog.ts'
import type { ChatRequest } from '../../domain/chat/chat-request.ts'
import {
  checkImage,
  type ImagePart,
  inStandardBase64,
  isDataUri,
  listImageParts,
  MAX_IMAGE_BYTES,
  refuseSize,
  toDataUri,
  withImageUrls,
} from '../../domain/chat/images.ts'
import { NeverSent } from '../../ports/engines.ts'
import { withDeadline } from '../deadline.ts'
import { type CallContext, getEnginePart, type Ports } from '../deps.ts'

/** Most image addresses that are fetched for one request; Bedrock accepts 20 images. */
const MAX_FETCHED = 20
/** Most image hosts that are resolved for one request, when an engine in our network fetches the images itself. */
const MAX_HOSTS = 20
/** Most bytes of all images that are fetched for one request: as many as a request body with inline images may have. */
const MAX_FETCHED_BYTES = 20 * 2 ** 20
/** Most concurrent fetches of one request, so that one request cannot use the whole process. */
const FETCHED_AT_ONCE = 4
/** Time for all fetches of one request; a single fetch has 10 s. */
const FETCH_MS = 20_000

/**
 * Returns the request for the engine of a model. If the engine does not fetch images itself, `data:` URIs replace their
 * addresses. Called once money is held. `authorize` requests billing's permission under the current rules: before that,
 * nothing of the call leaves the process, neither to a host of an image nor to the engine.
 * @throws {NeverSent} with the error of an image or of `authorize` as its `cause`: the engine was not called.
 */
export type RequestWithImages = (model: Model, authorize: () => Promise<void>) => Promise<ChatRequest>

/**
 * Checks the addresses of a request's images. Images are fetched only when the returned function is called, each once.
 * @throws {KisError} `invalid_request`: an address may not be fetched.
 * @throws {KisError} `residency_policy_violation`: the policy permits local engines only, so no address is fetched.
 */
export function requestImages(deps: Ports, context: CallContext, original: ChatRequest): RequestWithImages {
  const request = inStandardBase64(original)
  const images = listImageParts(request).filter(({ url }) => !isDataUri(url))
  for (const { url, param } of images) {
    if (context.caller.residencyPolicy === 'local_only') {
      throw new KisError(
        'residency_policy_violation',
        "The organization's residency policy permits local engines only; images come as data: URIs, because nothing is fetched from elsewhere.",
        { param },
      )
    }
    if (!deps.egress.allows(url)) refuseFetch('address', param)
  }
  let fetched: Promise<ReadonlyMap<string, string>> | undefined
  let judged: Promise<void> | undefined
  const prepare = async (model: Model, authorize: () => Promise<void>): Promise<ChatRequest> => {
    if (getEnginePart(deps, model, 'chat').fetchesImages) {
      judged ??= judgeHosts(deps, context, authorize, images)
      await judged
      return request
    }
    fetched ??= fetchAll(deps, context, authorize, images)
    return withImageUrls(request, await fetched)
  }
  return async (model, authorize) => {
    // A vendor's cloud fetches from outside, where it cannot reach our hosts.
    const isUnchanged = model.residency === 'cloud' && getEnginePart(deps, model, 'chat').fetchesImages
    if (images.length === 0 || isUnchanged) return request
    try {
      const prepared = await prepare(model, authorize)
      // Fetching takes seconds, in which the rules may change.
      await authorize()
      return prepared
    } catch (error) {
      throw new NeverSent(error)
    }
  }
}

/** @throws {KisError} `invalid_request`: the host of an image resolves to an address that the engine may not fetch. */
async function judgeHosts(
  { egress }: Ports,
  { signal }: CallContext,
  authorize: () => Promise<void>,
  images: readonly ImagePart[],
): Promise<void> {
  const byHost = new Map(images.map((image) => [new URL(image.url).host, image]))
  if (byHost.size > MAX_HOSTS)
    refuse('array_above_max_length', images[0]!.param, `This model's images come from at most ${MAX_HOSTS} hosts a request.`)
  // The names of hosts go to DNS servers.
  await authorize()
  const judge = async ({ url, param }: ImagePart) => {
    if (!(await egress.mayReach(url, signal))) refuseFetch('unreachable', param)
  }
  await Promise.all([...byHost.values()].map(judge))
}

/**
 * Returns data URIs by address.
 * @throws {KisError} the error of the first fetch that fails; it ends the others.
 */
async function fetchAll(
  deps: Ports,
  context: CallContext,
  authorize: () => Promise<void>,
  images: readonly ImagePart[],
): Promise<ReadonlyMap<string, string>> {
  const distinct = new Map<string, ImagePart>()
  for (const image of images) if (!distinct.has(image.url)) distinct.set(image.url, image)
  const beyond = [...distinct.values()][MAX_FETCHED]
  if (beyond) refuse('array_above_max_length', beyond.param, `This model's images come from at most ${MAX_FETCHED} addresses a request.`)
  const stop = new AbortController()
  const left = distinct.values()
  const fetched = new Map<string, string>()
  let size = 0
  const late = () => new KisError('invalid_request', 'The images could not be fetched in time.', { param: images[0]!.param })
  return withDeadline(FETCH_MS, late, context.signal, async (signal) => {
    const ended = AbortSignal.any([signal, stop.signal])
    try {
      const work = async () => {
        for (const image of left) {
          const bytes = await fetchImage(deps, context, authorize, image, ended)
          size += bytes.length
          if (size > MAX_FETCHED_BYTES) {
            const most = sizeText(MAX_FETCHED_BYTES)
            refuse('payload_too_large', image.param, `The images of a request that are fetched may have at most ${most} together.`)
          }
          fetched.set(image.url, toDataUri(checkImage(bytes, image.param), bytes))
        }
      }
      await Promise.all(Array.from({ length: FETCHED_AT_ONCE }, work))
    } finally {
      stop.abort()
    }
    return fetched
  })
}

async function fetchImage(
  { egress, log }: Ports,
  { requestId, caller: { organizationId } }: CallContext,
  authorize: () => Promise<void>,
  { url, param }: ImagePart,
  signal: AbortSignal,
): Promise<Buffer> {
  try {
    const headers = { accept: 'image/png, image/jpeg, image/gif, image/webp' }
    const { status, body } = await egress.fetch({ url, organizationId, headers, maxBytes: MAX_IMAGE_BYTES, authorize }, signal)
    if (status !== 200) refuse('invalid_request', param, `The image's address returned status ${status}.`)
    return body
  } catch (error) {
    if (!(error instanceof EgressError)) throw error
    // The address comes from the caller, so it is not logged.
    log.info(
      { requestId, reason: error.reason, cause: (error.cause as { readonly code?: unknown } | undefined)?.code },
      'image not fetched',
    )
    return refuseFetch(error.reason, param)
  }
}

function refuseFetch(reason: EgressFailure, param: string): never {
  if (reason === 'too_large') return refuseSize(param)
  if (reason === 'busy') throw new TooBusy('The service fetches as many images as it can.')
  const message =
    reason === 'address'
      ? 'An image is at an http or https address of a public host on port 80 or 443, without a user name, or in a data: URI.'
      : 'The image could not be fetched from its address.'
  return refuse('invalid_request', param, message)
}
