import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dataUri, GIF, JPEG, png, WEBP } from '../../../../test/support/data/images.ts'
import { KisError } from '../../../common/errors.ts'
import type { ChatRequest } from './chat-request.ts'
import { checkImage, checkImageUrl, inStandardBase64, listImageParts, MAX_IMAGE_BYTES, withImageUrls } from './images.ts'

const PARAM = 'messages[0].content[1].image_url.url'

function catchFailure(run: () => unknown): KisError | null {
  try {
    run()
  } catch (error) {
    if (error instanceof KisError) return error
    throw error
  }
  return null
}

describe('Images in data: URIs', () => {
  it.each([
    ['a PNG', dataUri(png())],
    ['a JPEG', dataUri(JPEG, 'image/jpeg')],
    ['a JPEG by its common misspelling', dataUri(JPEG, 'image/jpg')],
    [
      'a JPEG with fill bytes and much metadata',
      dataUri(
        Buffer.concat([JPEG.subarray(0, 20), Buffer.from(`ffffffe1ffff${'00'.repeat(65_533)}`.repeat(20), 'hex'), JPEG.subarray(20)]),
        'image/jpeg',
      ),
    ],
    ['a GIF', dataUri(GIF, 'image/gif')],
    ['a WebP', dataUri(WEBP, 'image/webp')],
    ['one with a wrong declared type', dataUri(GIF, 'image/png')],
    ['one with parameters', dataUri(png(), 'image/png;name=a.png')],
    ['one in capital letters', `DATA:IMAGE/PNG;BASE64,${png().toString('base64')}`],
    ['base64 with line breaks', dataUri(png()).replace(/.{40}/g, '$&\r\n')],
    ['base64 in the alphabet of URLs, without padding', `data:image/png;base64,${png().toString('base64url')}`],
    ['40 million pixels', dataUri(png(1, 1, { claims: [8_000, 5_000] }))],
  ])('accept %s', (_name, url) => expect(catchFailure(() => checkImageUrl(url, PARAM))).toBeNull())

  const whole = png().toString('base64')
  it.each([
    ['text', dataUri(Buffer.from('hello'), 'text/plain'), 'unsupported_file_type'],
    ['an SVG', dataUri(Buffer.from('<svg/>'), 'image/svg+xml'), 'unsupported_file_type'],
    ['text that is declared as a PNG', dataUri(Buffer.from('hello, this is text')), 'unsupported_file_type'],
    ['a PNG that ends in its header', dataUri(png().subarray(0, 20)), 'unsupported_file_type'],
    ['a JPEG without a frame', dataUri(JPEG.subarray(0, 20), 'image/jpeg'), 'unsupported_file_type'],
    [
      'a JPEG of zeros',
      dataUri(Buffer.concat([JPEG.subarray(0, 20), Buffer.alloc(2 ** 20), JPEG.subarray(20)]), 'image/jpeg'),
      'unsupported_file_type',
    ],
    [
      'a JPEG of endless segments',
      dataUri(Buffer.concat([JPEG.subarray(0, 20), Buffer.from('ffe00002'.repeat(2_000), 'hex'), JPEG.subarray(20)]), 'image/jpeg'),
      'unsupported_file_type',
    ],
    [
      'a JPEG of 65,535 × 65,535 pixels',
      dataUri(Buffer.concat([JPEG.subarray(0, 25), Buffer.alloc(4, 0xff), JPEG.subarray(29)]), 'image/jpeg'),
      'payload_too_large',
    ],
    ['nothing', 'data:image/png;base64,', 'unsupported_file_type'],
    ['no base64', 'data:image/png,%89PNG', 'invalid_request'],
    ['no comma', 'data:image/png;base64', 'invalid_request'],
    ['an empty text', 'data:', 'invalid_request'],
    ['an incomplete prefix', `data:image/png;${'a=b;'.repeat(100)}base64,${whole}`, 'invalid_request'],
    ['base64 with other characters', `data:image/png;base64,${whole.slice(0, 20)}*${whole.slice(21)}`, 'invalid_request'],
    ['truncated base64', `data:image/png;base64,${whole.slice(0, -3)}`, 'invalid_request'],
    ['60,000 × 60,000 pixels', dataUri(png(1, 1, { claims: [60_000, 60_000] })), 'payload_too_large'],
    ['a width of 2^32 - 1', dataUri(png(1, 1, { claims: [2 ** 32 - 1, 2 ** 32 - 1] })), 'payload_too_large'],
    ['an image without pixels', dataUri(png(1, 1, { claims: [0, 5] })), 'invalid_request'],
    ['more bytes than the limit', dataUri(Buffer.concat([png(), Buffer.alloc(MAX_IMAGE_BYTES)])), 'payload_too_large'],
  ])('refuse %s', (_name, url, code) => {
    expect(catchFailure(() => checkImageUrl(url, PARAM))).toMatchObject({ code, param: PARAM })
  })

  it.each(['file:///etc/passwd', 'ftp://a/b', 'blob:x', '', 'javascript:1', 'a.png'])('%s is neither one nor a URL', (url) =>
    expect(catchFailure(() => checkImageUrl(url, PARAM))).toMatchObject({ code: 'invalid_request', param: PARAM }),
  )

  it('fail with a KisError only, for any text and any bytes', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.tuple(fc.constantFrom(png(), GIF, JPEG, WEBP), fc.nat(80)).map(([whole, end]) => whole.subarray(0, end)),
    )
    fc.assert(fc.property(fc.string(), (text) => void catchFailure(() => checkImageUrl(`data:${text}`, PARAM))))
    fc.assert(
      fc.property(
        bytes,
        fc.constantFrom('image/png', 'image/webp'),
        (image, type) => void catchFailure(() => checkImageUrl(dataUri(image, type), PARAM)),
      ),
    )
  })
})

it('the type of an image is read from its bytes', () =>
  expect([png(), JPEG, GIF, WEBP].map((bytes) => checkImage(bytes, PARAM))).toEqual(['image/png', 'image/jpeg', 'image/gif', 'image/webp']))

it('images of a request are found with their paths and replaced without a change of the rest', () => {
  const part = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'low' } })
  const request = {
    model: 'm',
    seed: 7,
    messages: [
      { role: 'system', content: 'no parts' },
      { role: 'user', content: [{ type: 'text', text: 'a' }, part('http://a'), part('http://b')], name: 'n' },
      { role: 'tool', tool_call_id: 'c', content: [part('http://a')] },
    ],
  } as unknown as ChatRequest
  expect(listImageParts(request)).toEqual([
    { url: 'http://a', param: 'messages[1].content[1].image_url.url' },
    { url: 'http://b', param: 'messages[1].content[2].image_url.url' },
    { url: 'http://a', param: 'messages[2].content[0].image_url.url' },
  ])
  const before = structuredClone(request)
  expect(withImageUrls(request, new Map([['http://a', 'data:x']]))).toEqual({
    ...request,
    messages: [
      request.messages[0],
      { role: 'user', content: [{ type: 'text', text: 'a' }, part('data:x'), part('http://b')], name: 'n' },
      { role: 'tool', tool_call_id: 'c', content: [part('data:x')] },
    ],
  })
  expect(request).toEqual(before)
})

it('images are sent to vendors in standard base64 on one line', () => {
  const toRequest = (url: string) => ({ model: 'm', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })
  const standard = toRequest(dataUri(png()))
  const inLines = toRequest(`data:image/png;base64,${png().toString('base64url').replace(/.{40}/g, '$&\n')}`)
  expect(inStandardBase64(inLines as unknown as ChatRequest)).toEqual(standard)
  expect(inStandardBase64(standard as unknown as ChatRequest)).toBe(standard)
})
