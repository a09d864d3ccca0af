/** Reads YAML and JSON into plain values, and remembers where each of them stands in the text. */
import {
  boolCoreTag,
  EVENT_ID,
  type Event,
  floatCoreTag,
  getScalarValue,
  intCoreTag,
  NOT_RESOLVED,
  nullCoreTag,
  parseEvents,
  SCALAR_STYLE,
  YAMLException,
} from 'js-yaml';
import type { FieldPath } from './problem.ts';

const MOST_CHARACTERS = 4_000_000;
const MOST_VALUES = 1_000_000;
const DEEPEST = 64;
/** YAML's own tags of the JSON values; other tags make something else of a text. */
const PLAIN_TAG = /^(?:!!|!<tag:yaml\.org,2002:)(str|int|float|bool|null|map|seq)>?$/;
/** How a plain scalar is read: the first of these that takes it, else it is a text (YAML 1.2, core schema). */
const SCALAR_TAGS = [nullCoreTag, boolCoreTag, intCoreTag, floatCoreTag] as const;

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
  if (text.length > MOST_CHARACTERS)
    return [{ line: 1, column: 1, message: `the file has more than ${MOST_CHARACTERS} characters` }];
  const positionAt = (offset: number) => positionIn(text, offset);
  try {
    const root: Place = { keyOffset: 0, offset: 0, numberText: null, parts: new Map() };
    const value = new Reading(text, parseEvents(text, {})).document(root);
    return {
      value,
      positionOf: (path) => positionAt(placeOf(root, path).keyOffset),
      numberText: (path) => exactPlace(root, path)?.numberText ?? null,
    };
  } catch (error) {
    if (error instanceof Unreadable) return [{ ...positionAt(error.offset), message: error.message }];
    // Its message quotes the line, and a secret could stand in it. Its reason does not.
    if (error instanceof YAMLException)
      return [{ ...positionAt(error.mark?.position ?? 0), message: ownWords(error.reason) }];
    throw error;
  }
}

/** The reader's reason in the words of this file. */
function ownWords(reason: string): string {
  return reason.startsWith('nesting exceeded') ? 'the file is nested too deeply' : reason.slice(0, 200);
}

function positionIn(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: offset - lineStart + 1 };
}

/** A walk over the events of one text, which makes values of them. */
class Reading {
  readonly #text: string;
  readonly #events: readonly Event[];
  #next = 0;
  #left = MOST_VALUES;
  /** The anchors above, each with the index of the last value that had it. */
  readonly #anchors = new Map<string, number>();

  constructor(text: string, events: readonly Event[]) {
    this.#text = text;
    this.#events = events;
  }

  /** @throws Unreadable */
  document(root: Place): unknown {
    const starts = this.#events.flatMap(({ type }, index) => (type === EVENT_ID.DOCUMENT ? [index] : []));
    const [first, second] = starts;
    if (first === undefined) return null;
    if (second !== undefined)
      throw new Unreadable(
        startOf(this.#events[second + 1]),
        'the file holds more than one document: remove "---"',
      );
    const head = this.#events[first];
    if (head?.type === EVENT_ID.DOCUMENT && head.directives.some(({ kind }) => kind === 'tag'))
      throw new Unreadable(0, 'write the file without tags of its own: it holds plain data');
    this.#next = first + 1;
    return this.#events[this.#next]?.type === EVENT_ID.POP ? null : this.#value(root, 0);
  }

  #value(place: Place, depth: number): unknown {
    this.#left -= 1;
    if (this.#left < 0) throw new Unreadable(place.offset, 'the file holds too many values');
    if (depth > DEEPEST) throw new Unreadable(place.offset, `a value is nested more than ${DEEPEST} times`);
    const index = this.#next;
    const event = this.#events[index];
    this.#next += 1;
    if (event === undefined || event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.POP)
      throw new Unreadable(place.offset, 'this is no value');
    const anchor = event.anchorStart < 0 ? null : this.#text.slice(event.anchorStart, event.anchorEnd);
    if (event.type === EVENT_ID.ALIAS) return this.#aliased(anchor ?? '', event.anchorStart, place, depth);
    if (anchor !== null) this.#anchors.set(anchor, index);
    const tag = this.#tagOf(event);
    if (event.type === EVENT_ID.SCALAR) return this.#scalar(event, tag, place);
    if (tag !== null && tag !== (event.type === EVENT_ID.MAPPING ? 'map' : 'seq'))
      throw new Unreadable(startOf(event), 'its tag says that this is another kind of value');
    return event.type === EVENT_ID.SEQUENCE ? this.#list(place, depth) : this.#record(place, depth);
  }

  /** The value that an anchor above names, read again at the place of the alias. */
  #aliased(name: string, offset: number, place: Place, depth: number): unknown {
    const meant = this.#anchors.get(name);
    if (meant === undefined) throw new Unreadable(offset - 1, 'no anchor of this name stands above');
    const after = this.#next;
    this.#next = meant;
    const value = this.#value(place, depth + 1);
    this.#next = after;
    return value;
  }

  #list(place: Place, depth: number): unknown[] {
    const items: unknown[] = [];
    for (let event = this.#comes(); event !== null; event = this.#comes()) {
      const offset = startOf(event);
      items.push(this.#value(placeIn(place, items.length, offset, offset), depth + 1));
    }
    return items;
  }

  #record(place: Place, depth: number): Record<string, unknown> {
    const record: Record<string, unknown> = {};
    for (let key = this.#comes(); key !== null; key = this.#comes()) {
      const keyOffset = startOf(key);
      if (key.type !== EVENT_ID.SCALAR) throw new Unreadable(keyOffset, 'a name is a text');
      // A name is as it is written, also where YAML would read a number or a boolean: `1.0` stays `1.0`.
      const name = getScalarValue(this.#text, key);
      if (name === '__proto__') throw new Unreadable(keyOffset, 'this name cannot be used');
      if (Object.hasOwn(record, name))
        throw new Unreadable(keyOffset, 'this name stands here twice: remove one');
      this.#tagOf(key);
      this.#next += 1;
      const offset = startOf(this.#events[this.#next]);
      record[name] = this.#value(placeIn(place, name, keyOffset, offset), depth + 1);
    }
    return record;
  }

  /** The event that comes next inside a list or a record; null at its end, which is passed. */
  #comes(): Event | null {
    const event = this.#events[this.#next];
    if (event !== undefined && event.type !== EVENT_ID.POP) return event;
    this.#next += 1;
    return null;
  }

  #tagOf(event: { tagStart: number; tagEnd: number }): string | null {
    if (event.tagStart < 0) return null;
    const [, name] = PLAIN_TAG.exec(this.#text.slice(event.tagStart, event.tagEnd)) ?? [];
    if (name === undefined)
      throw new Unreadable(event.tagStart, 'write the value without a tag: this file holds plain data');
    return name;
  }

  #scalar(event: Scalar, tag: string | null, place: Place): unknown {
    const source = getScalarValue(this.#text, event);
    const isPlain = event.style === SCALAR_STYLE.PLAIN;
    if (tag === 'str' || (tag === null && !isPlain)) return source;
    for (const { resolve, tagName } of SCALAR_TAGS) {
      if (tag !== null && !tagName.endsWith(`:${tag}`)) continue;
      const value = resolve(source, tag !== null, tagName);
      if (value === NOT_RESOLVED) continue;
      if (typeof value === 'number') place.numberText = source;
      return value;
    }
    if (tag !== null) throw new Unreadable(startOf(event), `this is no ${tag}`);
    return source;
  }
}

type Scalar = Extract<Event, { type: typeof EVENT_ID.SCALAR }>;

function placeIn(within: Place, name: string | number, keyOffset: number, offset: number): Place {
  const place = { keyOffset, offset, numberText: null, parts: new Map() };
  within.parts.set(name, place);
  return place;
}

/** Where a value begins in the text, its quotes with it. */
function startOf(event: Event | undefined): number {
  if (event?.type === EVENT_ID.ALIAS) return event.anchorStart - 1;
  if (event?.type === EVENT_ID.SEQUENCE || event?.type === EVENT_ID.MAPPING) return event.start;
  if (event?.type !== EVENT_ID.SCALAR) return 0;
  const isQuoted = event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
  return Math.max(0, isQuoted ? event.valueStart - 1 : event.valueStart);
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
