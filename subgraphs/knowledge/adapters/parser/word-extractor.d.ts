declare module 'word-extractor' {
  interface Document {
    getBody(): string
    getFootnotes(): string
    getEndnotes(): string
    getHeaders(options?: { readonly includeFooters?: boolean }): string
    getTextboxes(options?: { readonly includeHeadersAndFooters?: boolean; readonly includeBody?: boolean }): string
  }
  export default class WordExtractor {
    extract(file: Buffer): Promise<Document>
  }
}
