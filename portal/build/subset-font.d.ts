declare module 'subset-font' {
  interface Options {
    readonly targetFormat: 'woff2'
    readonly noHinting: boolean
    /** OpenType features. Default: all. */
    readonly keepFeatures?: readonly string[]
    /** The range of each axis that stays. */
    readonly variationAxes?: Readonly<Record<string, { readonly min: number; readonly max: number }>>
  }
  /** Returns the font with only the glyphs of a text. */
  export default function subsetFont(font: Buffer, text: string, options: Options): Promise<Buffer>
}
