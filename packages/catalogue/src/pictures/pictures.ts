/** Finished pictures: fetched with their first look, drawn once however many look at them, and kept in bounds. */
import { createHash } from 'node:crypto';
import { Problem, unavailable } from '@farebox/core/http/problem';
import { type Thread, ThreadError } from '@farebox/core/threads/thread';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { LRUCache } from 'lru-cache';
import { type MapPicture, partsOf } from '../services/map-pictures.ts';
import type { Box } from '../upstreams/adapters/gibs-layers.ts';
import { findMap, type MapLayer } from '../upstreams/adapters/gibs-maps.ts';
import { Budget } from '../upstreams/budget.ts';
import type { Upstreams } from '../upstreams/index.ts';
import type { Drawing, Drawn } from './draw.ts';
import type { PictureOutcome } from './metrics.ts';

/** Pictures that may be in the making at once, in this process. */
const MOST_MAKING = 16;
/** From the look to the picture; what goes on after it is kept for the next look. */
const DEADLINE_MS = 25_000;
/** A map of a day that has passed fills up for some hours still. */
const KEPT_MS = 6 * 3_600_000;
/** Failures that are remembered, of the pictures that failed last. */
const MOST_FAILURES = 1_000;

export interface FinishedPicture {
  png: Buffer;
  /** The digest of its bytes. */
  etag: string;
  blank: boolean;
}

export interface Pictures {
  /**
   * @throws Problem 404 when the map has no such time, 502 and 504 when its source fails or is silent, 503 when too many
   *   are being made
   */
  look(picture: MapPicture): Promise<FinishedPicture>;
}

interface Kept {
  finished: FinishedPicture;
  madeAtMs: number;
}

/** The makers of pictures. */
interface Makers {
  gibs: Pick<Upstreams['gibs'], 'isPublished' | 'drawn'>;
  drawing: Pick<Thread<Drawing, Drawn>, 'run'>;
}

interface Settings {
  cacheBytes: number;
  /** The requests that all free looks together may make of the source: paid calls ask it too, and need their share. */
  requestsPerMinute: number;
  nowMs(): number;
  report(outcome: PictureOutcome): void;
}

export function createPictures({
  cacheBytes,
  requestsPerMinute,
  nowMs,
  report,
  ...makers
}: Makers & Settings): Pictures {
  const kept = new LRUCache<string, Kept>({
    maxSize: cacheBytes,
    sizeCalculation: ({ finished }) => finished.png.length + 1_000,
  });
  const making = new Map<string, Promise<FinishedPicture>>();

  const failures = createFailures(nowMs);
  const share = new Budget(requestsPerMinute, requestsPerMinute / 2, nowMs);

  /** @throws Problem when it may not be begun now */
  function begin(name: string, picture: MapPicture): Promise<FinishedPicture> {
    failures.refuse(name);
    if (making.size >= MOST_MAKING) throw tooMany(2_000);
    const waitMs = share.take(0, 1 + piecesOf(picture).length);
    if (waitMs > 0) throw tooMany(waitMs);
    const made = make(picture, makers)
      .then(
        (finished) => {
          kept.set(name, { finished, madeAtMs: nowMs() });
          return finished;
        },
        (error: unknown) => failures.keep(name, problemOf(error)),
      )
      .finally(() => making.delete(name));
    making.set(name, made);
    return made;
  }

  return {
    async look(picture) {
      const name = JSON.stringify(picture);
      const known = kept.get(name);
      if (known !== undefined && nowMs() - known.madeAtMs < KEPT_MS) {
        report('kept');
        return known.finished;
      }
      try {
        const finished = await withinDeadline(making.get(name) ?? begin(name, picture));
        report('drawn');
        return finished;
      } catch (error) {
        report('failed');
        throw problemOf(error);
      }
    },
  };
}

function tooMany(waitMs: number, cause?: unknown): Problem {
  return unavailable('BUSY', 'Too many pictures are being drawn. Look again shortly.', waitMs, {}, cause);
}

/**
 * Failures of the source, each for as long as its `Retry-After` says: whoever looks at one address again and again would
 * otherwise have the source taken for one that is down, by the paid calls too.
 */
function createFailures(nowMs: () => number) {
  const failures = new LRUCache<string, { problem: Problem; untilMs: number }>({
    maxSize: MOST_FAILURES,
    sizeCalculation: () => 1,
  });
  return {
    /** @throws the problem, in any case */
    keep(name: string, problem: unknown): never {
      const wait = problem instanceof Problem ? problem.headers['retry-after'] : undefined;
      if (problem instanceof Problem && wait !== undefined && problem.code !== 'BUSY')
        failures.set(name, { problem, untilMs: nowMs() + Number(wait) * 1_000 });
      throw problem;
    },
    /** @throws Problem what it failed of, with the time that is left */
    refuse(name: string): void {
      const failure = failures.get(name);
      const leftMs = failure === undefined ? 0 : failure.untilMs - nowMs();
      if (failure === undefined || leftMs <= 0) return;
      const { status, code, message, details, headers } = failure.problem;
      const retryAfterSeconds = Math.ceil(leftMs / 1_000);
      throw new Problem(status, code, message, {
        details: { ...details, retryAfterSeconds },
        headers: { ...headers, 'retry-after': String(retryAfterSeconds) },
        cause: failure.problem,
      });
    },
  };
}

/** Asks for the time first: a picture of another day would be worse than none. */
async function make(picture: MapPicture, { gibs, drawing }: Makers): Promise<FinishedPicture> {
  const map = findMap(picture.layer);
  if (map === null) throw new Error(`no map ${picture.layer}`);
  if (!(await gibs.isPublished(map, picture.time))) {
    throw new Problem(
      404,
      'PICTURE_NOT_PUBLISHED',
      `NASA GIBS has no ${map.id} of ${picture.time}, or not yet. Look again later.`,
    );
  }
  // One after the other: where the first fails, the source is spared the second with its repetitions.
  const pieces: Drawing['pieces'][number][] = [];
  for (const piece of piecesOf(picture)) pieces.push(await fetched(gibs, map, picture, piece));
  const { png, blank } = await drawing.run({
    pieces,
    heightPx: picture.heightPx,
    marker: markerOf(picture),
  });
  const bytes = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`;
  return { png: bytes, etag, blank };
}

async function fetched(
  gibs: Makers['gibs'],
  map: MapLayer,
  { time, heightPx }: MapPicture,
  { box, widthPx }: Piece,
) {
  const { value } = await gibs.drawn(map, time, box, { widthPx, heightPx });
  if (value === null) throw failed(`NASA GIBS does not draw ${map.id} of ${time} here.`, 300_000);
  return { png: value, widthPx };
}

interface Piece {
  box: Box;
  widthPx: number;
}

/** The pieces to ask for: one box, or two where the picture crosses the antimeridian, which no request may. */
export function piecesOf({ box, widthPx }: Pick<MapPicture, 'box' | 'widthPx'>): Piece[] {
  const { west, south, east, north } = box;
  if (west < east) return [{ box: [west, south, east, north], widthPx }];
  const western = Math.round(((180 - west) / (360 + east - west)) * widthPx);
  return [
    { box: [west, south, 180, north] as const, widthPx: western },
    { box: [-180, south, east, north] as const, widthPx: widthPx - western },
  ].filter((piece) => piece.widthPx > 0);
}

/** Where the marker lies, in pixels; null when the picture does not hold it. */
export function markerOf({ box, widthPx, heightPx, marker }: MapPicture): { x: number; y: number } | null {
  const parts = marker === null ? null : partsOf(box, marker);
  return parts === null ? null : { x: parts.across * (widthPx - 1), y: parts.down * (heightPx - 1) };
}

class TookTooLong extends Error {}

/** The work goes on after it. */
async function withinDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TookTooLong()), DEADLINE_MS);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error that is told to whoever looks. The answer that the picture belongs to stays as it is. */
function problemOf(error: unknown): unknown {
  if (error instanceof TookTooLong) return silent(error);
  if (error instanceof ThreadError) {
    return error.trouble === 'busy'
      ? tooMany(2_000, error)
      : failed('What NASA GIBS sent is no picture that can be shown.', 60_000, error);
  }
  if (!(error instanceof UpstreamUnavailable)) return error;
  const { reason, message, retryAfterMs = 30_000 } = error;
  if (reason === 'timeout') return silent(error);
  if (reason === 'rate_limited' || reason === 'not_configured')
    return unavailable('PICTURE_SOURCE_UNAVAILABLE', `${message}.`, retryAfterMs, {}, error);
  return failed(`${message}.`, retryAfterMs, error);
}

function silent(cause: unknown): Problem {
  return awaited(504, 'PICTURE_SOURCE_SILENT', 'NASA GIBS did not answer in time.', 10_000, cause);
}

function failed(message: string, retryAfterMs: number, cause?: unknown): Problem {
  return awaited(502, 'PICTURE_SOURCE_FAILED', message, retryAfterMs, cause);
}

function awaited(status: number, code: string, message: string, retryAfterMs: number, cause: unknown) {
  return new Problem(status, code, `${message} Look again later: the address stays good.`, {
    headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) },
    cause,
  });
}
