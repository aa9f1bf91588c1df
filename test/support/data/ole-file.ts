import { burn } from '@kenjiuno/msgreader/lib/Burner.js'
import { TypeEnum } from '@kenjiuno/msgreader/lib/Reader.js'

/** The entries of an OLE file by name. A folder is a record of its entries. */
export interface OleFolder {
  readonly [name: string]: Uint8Array | OleFolder
}

/** Returns an OLE file, the container of old Office documents and Outlook messages. */
export function oleFile(root: OleFolder): Buffer {
  const entries: Parameters<typeof burn>[0] = [{ name: 'Root Entry', type: TypeEnum.ROOT, length: 0, children: [] }]
  const add = (folder: OleFolder, parent: (typeof entries)[number]) => {
    for (const [name, content] of Object.entries(folder)) {
      const entry =
        content instanceof Uint8Array
          ? { name, type: TypeEnum.DOCUMENT, length: content.length, binaryProvider: () => Uint8Array.from(content) }
          : { name, type: TypeEnum.DIRECTORY, length: 0, children: [] }
      parent.children!.push(entries.push(entry) - 1)
      if (!(content instanceof Uint8Array)) add(content, entry)
    }
  }
  add(root, entries[0]!)
  return Buffer.from(burn(entries))
}

/** Returns an Outlook message with an attachment. */
export function msgFile(subject: string, text: string, attached: string): Buffer {
  const utf16 = (value: string) => Buffer.from(value, 'utf16le')
  return oleFile({
    '__properties_version1.0': Buffer.alloc(32),
    '__substg1.0_0037001F': utf16(subject),
    '__substg1.0_0C1A001F': utf16('Ali'),
    '__substg1.0_1000001F': utf16(text),
    '__attach_version1.0_#00000000': {
      '__properties_version1.0': Buffer.alloc(8),
      '__substg1.0_3707001F': utf16('notes.txt'),
      '__substg1.0_37010102': Buffer.from(attached),
    },
  })
}

/** Returns a Word 97 document ([MS-DOC]) whose text is one piece of UTF-16 without formatting. */
export function docFile(text: string): Buffer {
  const textAt = 2_048
  const content = Buffer.from(text, 'utf16le')
  const word = Buffer.alloc(Math.max(8_192, textAt + content.length))
  word.writeUInt16LE(0xa5ec, 0)
  word.writeUInt16LE(0xc1, 2)
  // The tables are in the stream 1Table.
  word.writeUInt16LE(0x0200, 0x0a)
  word.writeUInt32LE(text.length, 0x4c)
  content.copy(word, textAt)
  const pieces = Buffer.alloc(5 + 8 + 8)
  pieces.writeUInt8(2, 0)
  pieces.writeUInt32LE(16, 1)
  pieces.writeUInt32LE(0, 5)
  pieces.writeUInt32LE(text.length, 9)
  pieces.writeUInt32LE(textAt, 15)
  word.writeUInt32LE(0, 0x1a2)
  word.writeUInt32LE(pieces.length, 0x1a6)
  const table = Buffer.alloc(4_096)
  pieces.copy(table)
  return oleFile({ WordDocument: word, '1Table': table })
}
