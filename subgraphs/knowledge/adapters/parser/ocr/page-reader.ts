import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import openCore, { type TessBaseApi, type TesseractCore } from 'tesseract.js-core/tesseract-core-simd-lstm.js'
import type { Box } from '../../../ports/document-parser.ts'
import { readLines, readSize, type Word } from './tsv.ts'

/** An image of a page in a format that Leptonica decodes: PNM, PNG, JPEG, TIFF or WebP. */
export interface PageImage {
  readonly bytes: Uint8Array
  /** Undefined: only the image itself may contain it. */
  readonly dpi?: number
  /** Pixels per unit of the page. For a rendered page, the unit is a point. */
  readonly scale: number
  /** The Exif orientation, 1 to 8. */
  readonly orientation: number
}

/** The OCR result of an image. */
export interface PageText {
  /** The mean confidence of all letters, 0 to 100. */
  readonly confidence: number
  readonly paragraphs: readonly Paragraph[]
  /** The size of the image as displayed, in pixels. */
  readonly width: number
  readonly height: number
}

/** A paragraph with the positions of its lines. */
export interface Paragraph {
  readonly text: string
  /** The lines with their positions in the image, in pixels. */
  readonly lines: readonly { readonly text: string; readonly box: Box }[]
}

/** Engine 1 is the neural network; the data has no other. */
const LSTM = 1
/** Detects columns and paragraphs automatically. */
const AUTO = 3
const SINGLE_WORD = 8
/** Pixels around a word that is recognized again. Without them, the first and last strokes are lost. */
const MARGIN = 4
/** A page below this confidence may be upside down. Tesseract itself corrects only pages rotated by 90°. */
const UPRIGHT_CONFIDENCE = 65
/** Maximum time of the first recognition that leaves time for another: a page has 20 s of processor time. */
const MAX_FIRST_READING_MS = 9_000
/** For each Exif orientation, the one that shows the image upside down. */
const ON_ITS_HEAD = [3, 3, 4, 1, 2, 7, 8, 5, 6] as const
/** A paragraph below this confidence is a stamp, a drawing or dirt. */
const LEAST_CONFIDENCE = 35

/**
 * Recognizes images of pages with Tesseract, compiled to WebAssembly, in Arabic and English. It uses the core of
 * tesseract.js without its workers, which a child may not start, and without its loader, which may download data.
 */
export class PageReader {
  readonly #core: TesseractCore
  readonly #both: TessBaseApi
  #arabic: TessBaseApi | undefined

  private constructor(core: TesseractCore) {
    this.#core = core
    for (const language of ['ara', 'eng']) core.FS.writeFile(`/${language}.traineddata`, readData(language))
    this.#both = this.#open('ara+eng', AUTO)
  }

  static async open(): Promise<PageReader> {
    const silent = () => undefined
    const wasmBinary = readFileSync(findFile('tesseract.js-core/tesseract-core-simd-lstm.wasm'))
    return new PageReader(await openCore({ wasmBinary, TesseractProgress: silent, print: silent, printErr: silent }))
  }

  /**
   * Recognizes an image. If the confidence is low, recognizes it upside down as well, and returns the better result.
   * @throws {Error} if the image cannot be decoded.
   */
  read(image: PageImage): PageText {
    this.#core.FS.writeFile('/input', image.bytes)
    const startMs = cpuMs()
    const read = this.#readAsShown(image)
    if (read.isBlank || read.confidence >= UPRIGHT_CONFIDENCE || cpuMs() - startMs > MAX_FIRST_READING_MS) return read
    const turned = this.#readAsShown({ ...image, orientation: ON_ITS_HEAD[image.orientation]! })
    return turned.confidence > read.confidence ? turnedBack(turned) : read
  }

  #readAsShown(image: PageImage): PageText & { readonly isBlank: boolean } {
    this.#show(this.#both, image)
    const table = recognise(this.#both)
    const lines = readLines(table).map((words) => this.#readLatinAgain(words, image))
    return { ...toPageText(lines), ...readSize(table), isBlank: lines.length === 0 }
  }

  /**
   * With two languages, Tesseract recognizes some Arabic words as Latin nonsense. Latin words of Arabic lines are
   * recognized again in Arabic only, and the result with the higher confidence is used.
   */
  #readLatinAgain(words: readonly Word[], image: PageImage): readonly Word[] {
    if (!words.some(({ text }) => isArabic(text))) return words
    return words.map((word) => {
      if (!/[A-Za-z]/.test(word.text)) return word
      const found = this.#readWord(word, image)
      return found && isArabic(found.text) && found.confidence > word.confidence ? { ...word, ...found } : word
    })
  }

  #readWord({ left, top, width, height }: Word, image: PageImage): Pick<Word, 'text' | 'confidence'> | undefined {
    this.#arabic ??= this.#open('ara', SINGLE_WORD)
    if (this.#shownIn !== image) this.#show(this.#arabic, image)
    this.#shownIn = image
    this.#arabic.SetRectangle(Math.max(0, left - MARGIN), Math.max(0, top - MARGIN), width + 2 * MARGIN, height + 2 * MARGIN)
    const words = readLines(recognise(this.#arabic)).flat()
    if (words.length === 0) return undefined
    return { text: words.map(({ text }) => text).join(' '), confidence: Math.min(...words.map(({ confidence }) => confidence)) }
  }

  /** The image that is loaded in the Arabic engine. */
  #shownIn: PageImage | undefined

  #show(api: TessBaseApi, { dpi, orientation }: PageImage): void {
    if (api.SetImageFile(orientation, 0) !== 0) throw new Error('the image cannot be decoded')
    if (dpi !== undefined) api.SetSourceResolution(dpi)
  }

  #open(languages: string, mode: number): TessBaseApi {
    const api = new this.#core.TessBaseAPI()
    if (api.Init('/', languages, LSTM) !== 0) throw new Error(`Tesseract cannot load ${languages}`)
    api.SetPageSegMode(mode)
    return api
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

function recognise(api: TessBaseApi): string {
  if (api.Recognize(null) !== 0) throw new Error('the image cannot be recognised')
  return api.GetTSVText(0)
}

function toPageText(lines: readonly (readonly Word[])[]): Pick<PageText, 'confidence' | 'paragraphs'> {
  const paragraphs = new Map<string, (readonly Word[])[]>()
  for (const words of lines) {
    const { paragraph } = words[0]!
    const known = paragraphs.get(paragraph)
    if (known) known.push(words)
    else paragraphs.set(paragraph, [words])
  }
  const confident = [...paragraphs.values()].filter((own) => meanConfidence(own.flat()) >= LEAST_CONFIDENCE)
  return { confidence: meanConfidence(confident.flat(2)), paragraphs: confident.map(joinLines) }
}

/** Returns the text of an image that was recognized upside down, with positions in the displayed image. */
function turnedBack({ confidence, paragraphs, width, height }: PageText): PageText {
  const back = (box: Box) => ({ ...box, x: width - box.x - box.width, y: height - box.y - box.height })
  const own = paragraphs.map(({ text, lines }) => ({ text, lines: lines.map((line) => ({ text: line.text, box: back(line.box) })) }))
  return { confidence, paragraphs: own, width, height }
}

/** Joins lines, and words that a hyphen divides at a line end. */
function joinLines(lines: readonly (readonly Word[])[]): Paragraph {
  const texts = lines.map((words) => words.map(({ text }) => text).join(' '))
  const joined = texts.map((text, index) => {
    const next = texts[index + 1]
    if (next === undefined) return text
    return /\p{Ll}-$/u.test(text) && /^\p{Ll}/u.test(next) ? text.slice(0, -1) : `${text} `
  })
  return { text: joined.join(''), lines: lines.map((words, index) => ({ text: joined[index]!, box: boxAround(words) })) }
}

function boxAround(words: readonly Word[]): Box {
  const x = Math.min(...words.map(({ left }) => left))
  const y = Math.min(...words.map(({ top }) => top))
  const right = Math.max(...words.map(({ left, width }) => left + width))
  const bottom = Math.max(...words.map(({ top, height }) => top + height))
  return { x, y, width: right - x, height: bottom - y }
}

/** Weights words by their length. */
function meanConfidence(words: readonly Word[]): number {
  let letters = 0
  let sum = 0
  for (const { text, confidence } of words) {
    letters += text.length
    sum += text.length * confidence
  }
  return letters === 0 ? 0 : sum / letters
}

function isArabic(text: string): boolean {
  return /[\u0620-\u064a]/.test(text)
}

function readData(language: string): Buffer {
  return gunzipSync(readFileSync(findFile(`@tesseract.js-data/${language}/4.0.0_best_int/${language}.traineddata.gz`)))
}

function findFile(path: string): string {
  return fileURLToPath(import.meta.resolve(path))
}
