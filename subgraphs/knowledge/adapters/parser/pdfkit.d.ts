/** The part of pdfkit that tests use. The package has no types of its own. */
declare module 'pdfkit' {
  export interface PDFDocumentOptions {
    readonly userPassword?: string
    readonly ownerPassword?: string
  }

  export default class PDFDocument {
    constructor(options?: PDFDocumentOptions)
    readonly outline: { addItem(title: string): void }
    on(event: 'data', listener: (piece: Buffer) => void): this
    on(event: 'end', listener: () => void): this
    text(text: string): this
    moveDown(): this
    addPage(): this
    rect(x: number, y: number, width: number, height: number): this
    fill(): this
    end(): void
  }
}
