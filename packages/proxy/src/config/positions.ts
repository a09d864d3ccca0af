/** Reads YAML and JSON into plain values, and remembers where each of them stands in the text. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Scalar } from 'yaml';
import type { FieldPath } from './problem.ts';

const MOST_CHARACTERS = 4_000_000;
const MOST_VALUES = 1_000_000;
const DEEPEST = 64;
/** YAML's own tags of the JSON values; other tags make something else of a text. */
const PLAIN_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/;

/** The place of a value in the text. */
interface Place {
  keyOffset: number;
  offset: number;
  /** The text of a number as it was written; null for everything else. */
  numberText: string | null;
  parts: Map<string | number, Place>;
}

export interface Position {
  /** From 1. */
  line: number;
  column: number;
}

/** A text's value with the places of its parts. */
export interface Located {
  readonly value: unknown;
  /** Where a field stands: its name, or the nearest part around it that is there. */
  positionOf(path: FieldPath): Position;
  /** A number as it was written, such as `0.10`; null where no number stands. */
  numberText(path: FieldPath): string | null;
}

export type ReadProblem = Position & { message: string };

class Unreadable extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** Reads a text of YAML, or of JSON, which is YAML too. Its own faults are returned, never thrown. */
export function readLocated(text: string): Located | readonly ReadProblem[] {
  const lines = new LineCounter();
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (text.length > MOST_CHARACTERS)
    return [{ line: 1, column: 1, message: `the file has more than ${MOST_CHARACTERS} characters` }];
  try {
    // Without pretty errors: those quote the line, and a secret could stand in it. Names that stand twice are found below, in one
    // look at each: the reader's own search takes a time that grows with the square of the routes.
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
    if (document.errors.length > 0)
      return document.errors.map(({ pos, message }) => ({
        ...positionAt(pos[0]),
        message: ownWords(message),
      }));
    const root: Place = { keyOffset: 0, offset: 0, numberText: null, parts: new Map() };
    const budget = { left: MOST_VALUES };
    const value = readValue(document.contents, root, 0, { budget, anchors: new Map() });
    return {
      value,
      positionOf: (path) => positionAt(placeOf(root, path).keyOffset),
      numberText: (path) => exactPlace(root, path)?.numberText ?? null,
    };
  } catch (error) {
    if (error instanceof Unreadable) return [{ ...positionAt(error.offset), message: error.message }];
    if (error instanceof RangeError)
      return [{ line: 1, column: 1, message: 'the file is nested too deeply' }];
    throw error;
  }
}

/** The reader's sentence in the words of this file. */
function ownWords(message: string): string {
  if (message.includes('multiple documents')) return 'the file holds more than one document: remove "---"';
  return message.split('\n', 1)[0]?.slice(0, 200) ?? 'cannot be read';
}

interface Reading {
  budget: { left: number };
  /** The anchors above, each with the last value that had it. */
  anchors: Map<string, Node>;
}

function readValue(node: Node | null, place: Place, depth: number, reading: Reading): unknown {
  reading.budget.left -= 1;
  if (reading.budget.left < 0) throw new Unreadable(place.offset, 'the file holds too many values');
  if (depth > DEEPEST) throw new Unreadable(place.offset, `a value is nested more than ${DEEPEST} times`);
  if (node === null) return null;
  if (isAlias(node)) {
    const meant = reading.anchors.get(node.source);
    if (meant === undefined) throw new Unreadable(offsetOf(node), 'no anchor of this name stands above');
    return readValue(meant, place, depth + 1, reading);
  }
  if ('anchor' in node && node.anchor !== undefined) reading.anchors.set(node.anchor, node);
  if ('tag' in node && typeof node.tag === 'string' && !PLAIN_TAG.test(node.tag))
    throw new Unreadable(offsetOf(node), 'write the value without a tag: this file holds plain data');
  if (isScalar(node)) return scalarOf(node, place);
  if (isSeq(node))
    return node.items.map((item, index) =>
      readValue(item as Node | null, placeIn(place, index, item, item), depth + 1, reading),
    );
  if (!isMap(node)) throw new Unreadable(offsetOf(node), 'this is no value');
  const record: Record<string, unknown> = {};
  for (const { key, value } of node.items) {
    const name = nameOf(key);
    if (name === '__proto__' || Object.hasOwn(record, name))
      throw new Unreadable(
        offsetOf(key),
        name === '__proto__' ? 'this name cannot be used' : 'this name stands here twice: remove one',
      );
    record[name] = readValue(value as Node | null, placeIn(place, name, key, value), depth + 1, reading);
  }
  return record;
}

/** A name as it is written, also where YAML would read a number or a boolean: `1.0` stays `1.0`. */
function nameOf(key: unknown): string {
  if (!isScalar(key)) throw new Unreadable(offsetOf(key), 'a name is a text');
  if (typeof key.value === 'string') return key.value;
  return key.source ?? '';
}

function scalarOf(node: Scalar, place: Place): unknown {
  const { value } = node;
  if (typeof value === 'number' || typeof value === 'bigint') place.numberText = node.source ?? String(value);
  if (typeof value === 'bigint') return Number(value);
  return value;
}

function placeIn(within: Place, name: string | number, key: unknown, value: unknown): Place {
  const keyOffset = offsetOf(key);
  const place = {
    keyOffset,
    offset: value === null ? keyOffset : offsetOf(value),
    numberText: null,
    parts: new Map(),
  };
  within.parts.set(name, place);
  return place;
}

function offsetOf(node: unknown): number {
  const { range } = (node ?? {}) as { range?: readonly number[] | null };
  return range?.[0] ?? 0;
}

/** The place of a field, or of the nearest part around it. */
function placeOf(root: Place, path: FieldPath): Place {
  let place = root;
  for (const name of path) {
    const next = place.parts.get(name);
    if (next === undefined) return place;
    place = next;
  }
  return place;
}

function exactPlace(root: Place, path: FieldPath): Place | undefined {
  return path.reduce<Place | undefined>((place, name) => place?.parts.get(name), root);
}
