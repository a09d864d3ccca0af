import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '../../../core/src/http/problem.ts';
import { ThreadError } from '../../../core/src/threads/thread.ts';
import { sourceUnavailable } from '../../../core/src/words/failure.ts';
import type { MapPicture } from '../services/map-pictures.ts';
import type { MapLayer } from '../upstreams/adapters/gibs-maps.ts';
import { createPictures, markerOf, piecesOf } from './pictures.ts';

const picture: MapPicture = {
  layer: 'MODIS_Terra_L3_NDVI_16Day',
  time: '2026-10-16',
  box: { west: 10, south: 40, east: 12, north: 41 },
  widthPx: 512,
  heightPx: 256,
  marker: { lat: 40.5, lon: 11 },
};
const SOURCE = { name: 'gibs', url: '', asOf: null, retrievedAt: '', cached: false, sandbox: false };

/** A house of pictures whose source answers as told, in pictures of so many bytes. */
function house(
  tell: {
    isPublished?: (map: MapLayer, time: string) => Promise<boolean>;
    drawn?: () => Promise<Uint8Array | null>;
    draw?: () => Promise<{ png: Uint8Array; blank: boolean }>;
    cacheBytes?: number;
    requestsPerMinute?: number;
  } = {},
) {
  const asked = { drawn: 0, outcomes: [] as string[] };
  let nowMs = 0;
  const pictures = createPictures({
    gibs: {
      isPublished: tell.isPublished ?? (async () => true),
      drawn: async () => {
        asked.drawn += 1;
        return { value: tell.drawn === undefined ? new Uint8Array(9) : await tell.drawn(), source: SOURCE };
      },
    },
    drawing: {
      run: tell.draw ?? (async () => ({ png: Buffer.alloc(50_000, asked.drawn), blank: false })),
    },
    cacheBytes: tell.cacheBytes ?? 1_000_000,
    requestsPerMinute: tell.requestsPerMinute ?? 240,
    nowMs: () => nowMs,
    report: (outcome) => asked.outcomes.push(outcome),
  });
  return { pictures, asked, later: (ms: number) => (nowMs += ms) };
}
async function refusal(run: Promise<unknown>): Promise<[number, string, boolean]> {
  try {
    await run;
  } catch (error) {
    assert(error instanceof Problem, String(error));
    return [error.status, error.code, error.headers['retry-after'] !== undefined];
  }
  return [200, '', false];
}

test('many who look at once wait for one picture, and who comes later gets the one that was kept', async () => {
  const { pictures, asked } = house();
  const all = await Promise.all(Array.from({ length: 50 }, () => pictures.look(picture)));
  assert.equal(new Set(all).size, 1);
  assert.equal(await pictures.look(structuredClone(picture)), all[0]);
  assert.equal(asked.drawn, 1);
  assert.deepEqual(new Set(asked.outcomes), new Set(['drawn', 'kept']));
  await pictures.look({ ...picture, marker: null });
  assert.equal(asked.drawn, 2);
});

test('a picture is fetched again after some hours, since the map of a day fills up', async () => {
  const { pictures, asked, later } = house();
  const first = await pictures.look(picture);
  later(5 * 3_600_000);
  assert.equal(await pictures.look(picture), first);
  later(2 * 3_600_000);
  assert.notEqual((await pictures.look(picture)).etag, first.etag);
  assert.equal(asked.drawn, 2);
});

test('what is kept has a bound in bytes, and what does not fit is drawn anew', async () => {
  const { pictures, asked } = house({ cacheBytes: 120_000 });
  const others = [0, 1, 2].map((lat) => ({ ...picture, marker: { lat: 40 + lat / 10, lon: 11 } }));
  for (const each of others) await pictures.look(each);
  await pictures.look(others[2] as MapPicture);
  assert.equal(asked.drawn, 3);
  await pictures.look(others[0] as MapPicture);
  assert.equal(asked.drawn, 4);
});

test('only so many are made at once; who comes too many is told when to come again', async () => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { pictures } = house({ drawn: () => gate.then(() => new Uint8Array(9)) });
  const looks = Array.from({ length: 17 }, (_, at) =>
    refusal(pictures.look({ ...picture, time: `2026-10-${10 + at}` })),
  );
  assert.deepEqual(await looks[16], [503, 'BUSY', true]);
  // Whoever asks for one that is being made needs no place of its own.
  const same = refusal(pictures.look({ ...picture, time: '2026-10-10' }));
  open();
  assert.deepEqual(await Promise.all([...looks.slice(0, 16), same]), Array(17).fill([200, '', false]));
  assert.deepEqual(await refusal(pictures.look(picture)), [200, '', false]);
});

describe('a failure is told, and the source is asked again after the time that was told, and not before:', () => {
  const failing = (reason: Parameters<typeof sourceUnavailable>[1]) => ({
    drawn: () => Promise.reject(sourceUnavailable('gibs', reason, 'NASA GIBS: no')),
  });
  const threads = (trouble: ThreadError['trouble']) => ({
    draw: () => Promise.reject(new ThreadError(trouble, 'no')),
  });
  const cases: [what: string, tell: Parameters<typeof house>[0], told: [number, string, boolean]][] = [
    ['its source is down', failing('upstream_down'), [502, 'PICTURE_SOURCE_FAILED', true]],
    ['it sent no picture', failing('invalid_reply'), [502, 'PICTURE_SOURCE_FAILED', true]],
    ['it is silent', failing('timeout'), [504, 'PICTURE_SOURCE_SILENT', true]],
    ['it was asked too often', failing('rate_limited'), [503, 'PICTURE_SOURCE_UNAVAILABLE', true]],
    ['it does not draw this', { drawn: async () => null }, [502, 'PICTURE_SOURCE_FAILED', true]],
    ['it has no such day', { isPublished: async () => false }, [404, 'PICTURE_NOT_PUBLISHED', false]],
    ['what it sent cannot be shown', threads('failed'), [502, 'PICTURE_SOURCE_FAILED', true]],
    ['what it sent takes for ever', threads('timeout'), [502, 'PICTURE_SOURCE_FAILED', true]],
    ['too many wait to be drawn', threads('busy'), [503, 'BUSY', true]],
  ];
  for (const [what, tell, told] of cases)
    test(what, async () => {
      const { pictures, asked, later } = house(tell);
      assert.deepEqual(await refusal(pictures.look(picture)), told);
      const first = asked.drawn;
      assert.deepEqual(await refusal(pictures.look(picture)), told);
      assert.deepEqual(asked.outcomes, ['failed', 'failed']);
      // What is full of other pictures is asked again at once.
      if (told[1] !== 'BUSY') assert.equal(asked.drawn, first);
      later(300_000);
      assert.deepEqual(await refusal(pictures.look(picture)), told);
      assert.equal(asked.drawn > first, first > 0);
    });
  test('one address has one try in that time, of others each has its own, and the time runs down', async () => {
    const { pictures, asked, later } = house(failing('upstream_down'));
    const waits: (string | undefined)[] = [];
    for (let at = 0; at < 3; at++) {
      await pictures.look(picture).catch(({ headers }: Problem) => waits.push(headers['retry-after']));
      later(14_000);
    }
    assert.deepEqual([waits, asked.drawn], [['30', '16', '2'], 1]);
    await refusal(pictures.look({ ...picture, marker: null }));
    await refusal(pictures.look(picture));
    assert.equal(asked.drawn, 3);
  });
});

test('all looks together ask a part of what the source allows, and what is kept asks nothing', async () => {
  const { pictures, asked, later } = house({ requestsPerMinute: 12 });
  const another = (at: number) => ({ ...picture, marker: { lat: 40.5, lon: 10 + at / 100 } });
  // Each asks for the day and for one piece: three at once, and then one in ten seconds.
  for (let at = 0; at < 3; at++) await pictures.look(another(at));
  assert.deepEqual(await refusal(pictures.look(another(3))), [503, 'BUSY', true]);
  await pictures.look(another(0));
  later(9_000);
  assert.deepEqual(await refusal(pictures.look(another(3))), [503, 'BUSY', true]);
  later(1_000);
  await pictures.look(another(3));
  assert.equal(asked.drawn, 4);
});

test('a box across the antimeridian is asked for in two, whose pixels add up', () => {
  const across = (west: number, east: number, widthPx: number) =>
    piecesOf({ box: { west, south: -1, east, north: 1 }, widthPx }).map(({ box, widthPx: px }) => [
      box[0],
      box[2],
      px,
    ]);
  assert.deepEqual(across(179, -178, 512), [
    [179, 180, 171],
    [-180, -178, 341],
  ]);
  // A part of less than half a pixel cannot be drawn.
  assert.deepEqual(across(179.9999, -170, 512), [[-180, -170, 512]]);
  assert.deepEqual(across(170, -179.9999, 512), [[170, 180, 512]]);
  assert.deepEqual(across(-180, 180, 512), [[-180, 180, 512]]);
});

test('a marker lies where its place does, on both sides of the antimeridian and at the poles', () => {
  const at = (box: [number, number, number, number], lat: number, lon: number) => {
    const [west, south, east, north] = box;
    return markerOf({
      ...picture,
      box: { west, south, east, north },
      widthPx: 101,
      heightPx: 101,
      marker: { lat, lon },
    });
  };
  assert.deepEqual(at([10, 40, 12, 42], 41, 11), { x: 50, y: 50 });
  for (const lon of [180, -180]) assert.deepEqual(at([179, -1, -179, 1], 0, lon), { x: 50, y: 50 });
  assert.deepEqual(at([-180, -90, 180, 90], 0, 0), { x: 50, y: 50 });
  assert.deepEqual(at([20, 88, 30, 90], 90, 20), { x: 0, y: 0 });
  // Binary fractions may put an edge beside itself.
  for (const [west, east] of [
    [178.1, 179.3],
    [10.1, 12.7],
    [12.3, 14.9],
    [179.3, -179.1],
  ] as const) {
    assert.deepEqual(at([west, 40.3, east, 41.9], 40.3, east), { x: 100, y: 100 });
    assert.deepEqual(at([west, 40.3, east, 41.9], 41.9, west), { x: 0, y: 0 });
  }
  assert.equal(at([10, 40, 12, 42], 43, 11), null);
  assert.equal(at([10, 40, 12, 42], 41, 9), null);
});
