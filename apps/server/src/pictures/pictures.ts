/** Finished pictures: fetched with their first look, drawn once however many look at them, and kept in bounds. */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Problem, unavailable } from '../http/problem.ts';
import { type MapPicture, partsOf } from '../services/map-pictures.ts';
import type { Thread } from '../threads/thread.ts';
import { ThreadError } from '../threads/thread.ts';
import type { Box } from '../upstreams/gibs-layers.ts';
import { findMap, type MapLayer } from '../upstreams/gibs-maps.ts';
import type { Upstreams } from '../upstreams/index.ts';
import { UpstreamUnavailable } from '../words/failure.ts';
import type { Drawing, Drawn } from './draw.ts';
import type { PictureOutcome } from './metrics.ts';

/** Pictures that may be in the making at once, in this process. */
const MOST_MAKING = 16;
/** From the look to the picture; what goes on after it is kept for the next look. */
const DEADLINE_MS = 25_000;
/** A map of a day that has passed fills up for some hours still. */
const KEPT_MS = 6 * 3_600_000;

export interface FinishedPicture {
  png: Buffer;
  /** Of its bytes. */
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

/** What a picture is made with. */
interface Makers {
  gibs: Pick<Upstreams['gibs'], 'isPublished' | 'drawn'>;
  drawing: Pick<Thread<Drawing, Drawn>, 'run'>;
}

export function createPictures({
  cacheBytes,
  nowMs,
  report,
  ...makers
}: Makers & { cacheBytes: number; nowMs(): number; report(outcome: PictureOutcome): void }): Pictures {
  const kept = new LRUCache<string, Kept>({
    maxSize: cacheBytes,
    sizeCalculation: ({ finished }) => finished.png.length + 1_000,
  });
  const making = new Map<string, Promise<FinishedPicture>>();

  return {
    async look(picture) {
      const name = JSON.stringify(picture);
      const known = kept.get(name);
      if (known !== undefined && nowMs() - known.madeAtMs < KEPT_MS) {
        report('kept');
        return known.finished;
      }
      let made = making.get(name);
      if (made === undefined) {
        if (making.size >= MOST_MAKING)
          throw unavailable('BUSY', 'Too many pictures are being drawn. Look again shortly.', 2_000);
        made = make(picture, makers)
          .then((finished) => {
            kept.set(name, { finished, madeAtMs: nowMs() });
            return finished;
          })
          .finally(() => making.delete(name));
        making.set(name, made);
      }
      try {
        const finished = await withinDeadline(made);
        report('drawn');
        return finished;
      } catch (error) {
        report('failed');
        throw problemOf(error);
      }
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
  const pieces = await Promise.all(piecesOf(picture).map((piece) => fetched(gibs, map, picture, piece)));
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

/** What is asked for: one box, or two where the picture crosses the antimeridian, which no request may. */
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

/** What whoever looks is told. The answer that the picture belongs to stays as it is. */
function problemOf(error: unknown): unknown {
  if (error instanceof TookTooLong) return silent(error);
  if (error instanceof ThreadError) {
    return error.trouble === 'busy'
      ? unavailable('BUSY', 'Too many pictures are being drawn. Look again shortly.', 2_000, {}, error)
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
