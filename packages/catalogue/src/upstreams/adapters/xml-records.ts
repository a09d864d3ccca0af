import { setImmediate as nextTurn } from 'node:timers/promises';
import { SaxesParser } from 'saxes';

/** One element of a document, without its namespace's prefix. */
export interface XmlElement {
  name: string;
  attributes: Readonly<Record<string, string>>;
  children: XmlElement[];
  /** Its own text, trimmed. */
  text: string;
}

const PIECE_BYTES = 64 * 1024;
const MOST_DEPTH = 40;
/** Elements of one record: the longest real ones have a few thousand. */
const MOST_ELEMENTS = 50_000;
const MOST_TEXT = 2_000_000;

/**
 * Reads a document and hands over each element of some names when it ends. The rest of the document is not kept, and
 * other work of the process goes on in between. Entities beyond the five of XML are refused.
 *
 * @param wanted names of elements, without prefix; those inside one another belong to the outer one
 * @returns the root, without its children
 * @throws Error when the document is not well-formed, ends early, or one record is beyond all measure
 */
export async function readXmlRecords(
  bytes: Buffer,
  wanted: ReadonlySet<string>,
  take: (element: XmlElement) => void,
): Promise<XmlElement> {
  const parser = new SaxesParser({ xmlns: false });
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const open: XmlElement[] = [];
  let root: XmlElement | null = null;
  let depth = 0;
  let elements = 0;
  let characters = 0;
  let rootClosed = false;
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name: written, attributes }) => {
    depth += 1;
    if (depth > MOST_DEPTH) throw new Error(`elements nest deeper than ${MOST_DEPTH}`);
    const name = localName(written);
    const element: XmlElement = {
      name,
      attributes: Object.fromEntries(
        Object.entries(attributes).map(([key, value]) => [localName(key), String(value)]),
      ),
      children: [],
      text: '',
    };
    root ??= element;
    const parent = open.at(-1);
    if (parent === undefined && !wanted.has(name)) return;
    if (parent === undefined) {
      elements = 0;
      characters = 0;
    }
    elements += 1;
    if (elements > MOST_ELEMENTS) throw new Error(`a record has more than ${MOST_ELEMENTS} elements`);
    parent?.children.push(element);
    open.push(element);
  });
  const addText = (text: string) => {
    const element = open.at(-1);
    if (element === undefined) return;
    characters += text.length;
    if (characters > MOST_TEXT) throw new Error(`a record has more than ${MOST_TEXT} characters`);
    element.text += text;
  };
  parser.on('text', addText);
  parser.on('cdata', addText);
  parser.on('closetag', () => {
    depth -= 1;
    if (depth === 0) rootClosed = true;
    const element = open.pop();
    if (element === undefined) return;
    element.text = element.text.trim();
    if (open.length === 0) take(element);
  });
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    parser.write(decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true }));
    await nextTurn();
  }
  parser.write(decoder.decode());
  parser.close();
  if (root === null || !rootClosed) throw new Error('the document ends early');
  return root;
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

/** The elements of a path below another, such as `['idList', 'id']`. */
export function elementsAt(element: XmlElement, [name, ...rest]: readonly string[]): XmlElement[] {
  const found = element.children.filter((child) => child.name === name);
  return rest.length === 0 ? found : found.flatMap((child) => elementsAt(child, rest));
}

/** The text of the first element of a path; null when it is not there or empty. */
export function textAt(element: XmlElement, ...path: string[]): string | null {
  return elementsAt(element, path)[0]?.text || null;
}
