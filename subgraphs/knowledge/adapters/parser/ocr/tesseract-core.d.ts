/** The parts of Emscripten's module and of Tesseract's C++ interface that this service calls. */
declare module 'tesseract.js-core/tesseract-core-simd-lstm.js' {
  export interface TessBaseApi {
    /** Returns 0 if all languages were loaded. */
    Init(dataFolder: string, languages: string, engine: number): number
    SetPageSegMode(mode: number): void
    /**
     * Decodes the file `/input`. Returns 0 on success. `orientation` is the Exif orientation. `angle` is in radians.
     */
    SetImageFile(orientation: number, angle: number): number
    SetSourceResolution(dpi: number): void
    SetRectangle(left: number, top: number, width: number, height: number): void
    /** Returns 0 on success. */
    Recognize(monitor: null): number
    GetTSVText(page: number): string
  }
  export interface TesseractCore {
    readonly FS: { writeFile(path: string, bytes: Uint8Array): void }
    readonly TessBaseAPI: new () => TessBaseApi
  }
  export default function openCore(options: {
    readonly wasmBinary: Uint8Array
    readonly TesseractProgress: () => void
    readonly print: () => void
    readonly printErr: () => void
  }): Promise<TesseractCore>
}

/** The build without Node's module loader, which readers may not use. */
declare module '@hyzyla/pdfium/dist/index.esm.browser.js' {
  export { PDFiumLibrary } from '@hyzyla/pdfium'
}
