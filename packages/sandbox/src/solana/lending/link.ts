/**
 * Makes a Solana program of one object file that clang compiled for BPF: one section of code, the calls of the runtime by
 * name, and nothing else. Data (`.rodata`) is refused: the runtime would have to be told of every place that points to it.
 */

const ELF_HEADER_BYTES = 64;
const SECTION_BYTES = 64;
const SEGMENT_BYTES = 56;
const SYMBOL_BYTES = 24;
const RELOCATION_BYTES = 16;
/** Ten entries of two words. */
const DYNAMIC_BYTES = 160;
/** A call, in an object and in a program alike. */
const R_BPF_64_32 = 10;
const MACHINE_BPF = 247;
const SHARED_OBJECT = 3;
const GLOBAL = 0x10;
/** Where the code lies, in the file and in memory. */
const CODE_AT = 0x1000;
const ENTRY = 'entrypoint';

interface ObjectFile {
  code: Buffer;
  /** Offsets of functions in the code, by name. */
  functions: ReadonlyMap<string, number>;
  /** Where the code calls what. */
  calls: readonly { at: number; name: string; target: number | null }[];
}

/**
 * Links an object file.
 *
 * @returns the program as it is deployed
 * @throws Error if the object holds data, or calls in a way that is not known
 */
export function link(object: Buffer): Buffer {
  const { code, functions, calls } = readObject(object);
  const entry = functions.get(ENTRY);
  if (entry === undefined) throw new Error(`the object has no ${ENTRY}`);
  const outside: { at: number; name: string }[] = [];
  for (const { at, name, target } of calls) {
    if (target === null) {
      // The runtime finds the function by its name, and puts its number here.
      outside.push({ at, name });
      code.writeInt32LE(-1, at + 4);
      code.writeUInt8(GLOBAL, at + 1);
    } else code.writeInt32LE((target - at - 8) / 8, at + 4);
  }
  return writeProgram(code, entry, outside);
}

function readObject(object: Buffer): ObjectFile {
  const u64 = (at: number) => Number(object.readBigUInt64LE(at));
  const text = (at: number) => object.toString('latin1', at, object.indexOf(0, at));
  const sectionsAt = u64(40);
  const sections = Array.from({ length: object.readUInt16LE(60) }, (_, index) => {
    const at = sectionsAt + index * SECTION_BYTES;
    const [name, link] = [object.readUInt32LE(at), object.readUInt32LE(at + 40)];
    return { name, link, at: u64(at + 24), bytes: u64(at + 32) };
  });
  const namesAt = sections[object.readUInt16LE(62)]?.at ?? 0;
  const section = (name: string) => {
    const found = sections.find((one) => text(namesAt + one.name) === name);
    if (found === undefined) throw new Error(`the object has no section ${name}`);
    return found;
  };
  const code = section('.text');
  const symbols = section('.symtab');
  const symbolNamesAt = sections[symbols.link]?.at ?? 0;
  const symbol = (index: number) => {
    const at = symbols.at + index * SYMBOL_BYTES;
    const name = text(symbolNamesAt + object.readUInt32LE(at));
    return { name, isOutside: object.readUInt16LE(at + 6) === 0, value: u64(at + 8) };
  };
  const all = Array.from({ length: symbols.bytes / SYMBOL_BYTES }, (_, index) => symbol(index));
  const relocations = section('.rel.text');
  const calls = Array.from({ length: relocations.bytes / RELOCATION_BYTES }, (_, index) => {
    const place = relocations.at + index * RELOCATION_BYTES;
    const { name, isOutside, value } = symbol(object.readUInt32LE(place + 12));
    if (object.readUInt32LE(place + 8) !== R_BPF_64_32) throw new Error(`the object holds data: ${name}`);
    const at = u64(place);
    // A call of a function without a name outside says where it is from the section's beginning.
    const inside = name === '' ? (object.readInt32LE(code.at + at + 4) + 1) * 8 : value;
    return { at, name, target: isOutside ? null : inside };
  });
  return {
    code: Buffer.from(object.subarray(code.at, code.at + code.bytes)),
    functions: new Map(all.map(({ name, value }) => [name, value])),
    calls,
  };
}

/** A part of the program, as the section and the segment headers tell of it. */
interface Section {
  name: string;
  type: number;
  flags: number;
  at: number;
  content: Buffer;
  /** The section, by its number, that this one's texts or symbols are in. */
  link: number;
  align: number;
  entryBytes: number;
}

function writeProgram(code: Buffer, entry: number, calls: readonly { at: number; name: string }[]): Buffer {
  const names = [...new Set(calls.map(({ name }) => name))];
  const strings = stringTable(names);
  const symbols = Buffer.concat([
    Buffer.alloc(SYMBOL_BYTES),
    ...names.map((name) => symbolOf(strings.at(name))),
  ]);
  const relocations = Buffer.concat(
    calls.map(({ at, name }) =>
      words(CODE_AT + at, (BigInt(names.indexOf(name) + 1) << 32n) | BigInt(R_BPF_64_32)),
    ),
  );
  const dynamicAt = aligned(CODE_AT + code.length);
  const symbolsAt = dynamicAt + DYNAMIC_BYTES;
  const stringsAt = symbolsAt + symbols.length;
  const relocationsAt = aligned(stringsAt + strings.bytes.length);
  // FLAGS, TEXTREL, REL and its sizes, SYMTAB and its, STRTAB and its, and the end.
  const dynamic = words(
    ...[30, 4, 22, 0, 17, relocationsAt, 18, relocations.length, 19, RELOCATION_BYTES],
    ...[6, symbolsAt, 11, SYMBOL_BYTES, 5, stringsAt, 10, strings.bytes.length, 0, 0],
  );
  const one = (name: string, type: number, flags: number, at: number, content: Buffer, ...more: number[]) => {
    const [link = 0, align = 1, entryBytes = 0] = more;
    return { name, type, flags, at, content, link, align, entryBytes };
  };
  return writeFile(CODE_AT + entry, [
    one('.text', 1, 6, CODE_AT, code, 0, 8),
    one('.dynamic', 6, 3, dynamicAt, dynamic, 4, 8, 16),
    one('.dynsym', 11, 2, symbolsAt, symbols, 4, 8, SYMBOL_BYTES),
    one('.dynstr', 3, 2, stringsAt, strings.bytes),
    one('.rel.dyn', 9, 2, relocationsAt, relocations, 3, 8, RELOCATION_BYTES),
  ]);
}

/** A function of the runtime. @param nameAt where its name is among the texts */
function symbolOf(nameAt: number): Buffer {
  const symbol = Buffer.alloc(SYMBOL_BYTES);
  symbol.writeUInt32LE(nameAt, 0);
  symbol.writeUInt8(GLOBAL, 4);
  return symbol;
}

/** The code runs, what follows the dynamic section is read, and the dynamic section says where all is. */
function writeFile(entry: number, parts: readonly Section[]): Buffer {
  const [code, dynamic, ...read] = parts as [Section, Section, ...Section[]];
  const end = Math.max(...parts.map(({ at, content }) => at + content.length));
  const readAt = Math.min(...read.map(({ at }) => at));
  const titles = stringTable([...parts.map(({ name }) => name), '.shstrtab']);
  const headersAt = aligned(end + titles.bytes.length);
  const file = Buffer.alloc(headersAt + SECTION_BYTES * (parts.length + 2));
  writeElfHeader(file, { entry, headersAt, sections: parts.length + 2 });
  const segments = [
    { type: 1, flags: 5, at: code.at, bytes: code.content.length, align: 4_096 },
    { type: 1, flags: 4, at: readAt, bytes: end - readAt, align: 8 },
    { type: 2, flags: 6, at: dynamic.at, bytes: dynamic.content.length, align: 8 },
  ];
  for (const [index, { type, flags, at, bytes, align }] of segments.entries()) {
    const header = ELF_HEADER_BYTES + index * SEGMENT_BYTES;
    file.writeUInt32LE(type, header);
    file.writeUInt32LE(flags, header + 4);
    file.set(words(at, at, at, bytes, bytes, align), header + 8);
  }
  const title = { type: 3, flags: 0, at: end, content: titles.bytes, link: 0, align: 1, entryBytes: 0 };
  for (const [index, part] of [...parts, { ...title, name: '.shstrtab' }].entries()) {
    const header = headersAt + SECTION_BYTES * (index + 1);
    file.writeUInt32LE(titles.at(part.name), header);
    file.writeUInt32LE(part.type, header + 4);
    // The titles are in the file alone, and nowhere in memory.
    const inMemoryAt = part.at === end ? 0 : part.at;
    file.set(words(part.flags, inMemoryAt, part.at, part.content.length), header + 8);
    file.writeUInt32LE(part.link, header + 40);
    file.set(words(part.align, part.entryBytes), header + 48);
    file.set(part.content, part.at);
  }
  return file;
}

function writeElfHeader(file: Buffer, at: { entry: number; headersAt: number; sections: number }): void {
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  file.writeUInt16LE(SHARED_OBJECT, 16);
  file.writeUInt16LE(MACHINE_BPF, 18);
  file.writeUInt32LE(1, 20);
  file.set(words(at.entry, ELF_HEADER_BYTES, at.headersAt), 24);
  const sizes = [ELF_HEADER_BYTES, SEGMENT_BYTES, 3, SECTION_BYTES, at.sections, at.sections - 1];
  for (const [index, size] of sizes.entries()) file.writeUInt16LE(size, 52 + 2 * index);
}

/** Texts one after another, each with a zero behind it, and one in front. */
function stringTable(texts: readonly string[]): { bytes: Buffer; at(text: string): number } {
  const bytes = Buffer.from(`\0${texts.map((text) => `${text}\0`).join('')}`, 'latin1');
  return { bytes, at: (text) => bytes.indexOf(`\0${text}\0`, 0, 'latin1') + 1 };
}

function words(...values: readonly (number | bigint)[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length);
  for (const [index, value] of values.entries()) bytes.writeBigUInt64LE(BigInt(value), 8 * index);
  return bytes;
}

function aligned(at: number): number {
  return (at + 7) & ~7;
}
