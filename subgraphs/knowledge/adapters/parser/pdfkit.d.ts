/** The part of pdfkit that tests use. The package has no types of its own. */
declare module 'pdfkit' {
  export interface PDFDocumentOptions {
    readonly userPassword?: string
    readonly ownerPassword?: string
    readonly autoFirstPage?: boolean
  }

  export default class PDFDocument {
    constructor(options?: PDFDocumentOptions)
    /** The open page. */
    readonly page: { readonly dictionary: { readonly data: { Rotate?: number } } }
    readonly outline: { addItem(title: string): void }
    on(event: 'data', listener: (piece: Buffer) => void): this
    on(event: 'end', listener: () => void): this
    text(text: string, x?: number, y?: number): this
    fontSize(size: number): this
    image(source: Buffer, x: number, y: number, size: { readonly width: number; readonly height: number }): this
    moveDown(): this
    addPage(): this
    rect(x: number, y: number, width: number, height: number): this
    fill(): this
    end(): void
  }
}
