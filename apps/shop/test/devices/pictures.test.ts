/** Pictures beside answers: bought with the answer, looked at by whoever has the address, and by nobody's else. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { PNG } from 'pngjs';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { readPicture } from '../../../../packages/catalogue/src/upstreams/picture.ts';
import { fireIn } from '../../../../packages/sandbox/src/upstreams/firms.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import {
  jsonOf,
  startTestServer,
  startUpstreams,
  type TestServer,
  UPSTREAM_SEED,
} from '../server.fixture.ts';

const NOW_MS = Date.parse('2026-11-21T12:00:00Z');
const OLD = 'the-secret-of-yesterday-in-this-test';
const NEW = 'the-secret-of-tomorrow-in-this-test';
const HOUR_MS = 3_600_000;

let nowMs = NOW_MS;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
/** On both sides of a change of the secret. */
let here: TestServer;
let there: TestServer;
let key: string;
before(async () => {
  [database, upstreams] = await Promise.all([openTestDatabase(), startUpstreams(() => NOW_MS)]);
  const start = (FAREBOX_SECRET: string) =>
    startTestServer({
      pools: database,
      upstreamsUrl: upstreams.url,
      nowMs: () => nowMs,
      environment: { FAREBOX_SECRET, PICTURE_LINK_HOURS: '3' },
    });
  here = await start(`${OLD},${NEW}`);
  there = await start(`${NEW},${OLD}`);
  key = await here.key('20');
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([upstreams?.stop(), database?.close()]);
});

/** An answer's picture, and the notes beside it. */
async function bought(path: string, body: unknown, server = here) {
  // The sources are asked as often as they allow.
  nowMs += 2_000;
  const response = await server.call(path, key, body);
  const answer = await jsonOf(response);
  assert.equal(response.status, 200, JSON.stringify(answer));
  return { image: answer.data.image, notes: answer.provenance.notes as string[], data: answer.data };
}
/** A look at the picture, at one of the two servers, by the address that the answer gives. */
function look(url: string, init: RequestInit = {}, server = here) {
  const { pathname, search } = new URL(url);
  return fetch(server.url + pathname + search, init);
}
async function pngOf(response: Response) {
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal(response.headers.get('content-type'), 'image/png');
  return Buffer.from(await response.arrayBuffer());
}
const fault = (set: object) =>
  fetch(`${upstreams.url}/__control/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ upstream: 'gibs', remaining: 100, ...set }),
  });
const noFaults = () => fetch(`${upstreams.url}/__control/faults`, { method: 'DELETE' });

describe('each service about a place, by its example:', () => {
  const PICTURED: Record<string, RegExp> = {
    'fire-alerts': /Thermal_Anomalies/,
    vegetation: /^MODIS_Terra_L3_NDVI_16Day$/,
    'vegetation-health': /^MODIS_Terra_L3_NDVI_16Day$/,
    'land-use': /^MODIS_Combined_L3_IGBP/,
    'earthdata-sst': /^GHRSST_L4_MUR/,
    'flood-detection': /^VIIRS_Combined_Flood/,
    'weather-imagery': /^GOES-East/,
  };
  const WITHOUT = [
    'air-quality',
    'earthdata-precipitation',
    'earthdata-soil-moisture',
    'earthdata-ocean-color',
  ];
  for (const [path, layer] of Object.entries(PICTURED))
    test(`${path} has a picture of its map, with a ring where it was asked for`, async () => {
      const service = (await loadServices()).find((each) => each.path === path);
      assert(service);
      const { image } = await bought(path, service.example);
      assert.match(image.layer, layer);
      assert.match(image.attribution, /NASA GIBS/);
      assert(Date.parse(image.observedAt) <= NOW_MS);
      const response = await look(image.url);
      const png = await pngOf(response);
      assert.deepEqual(
        [readPicture(png)?.widthPx, readPicture(png)?.heightPx],
        [image.widthPx, image.heightPx],
      );
      assert.equal(response.headers.get('x-picture-blank'), 'false');
      const { lat, lon } = service.example as { lat: number; lon: number };
      assert.deepEqual([image.marker.lat, image.marker.lon], [lat, lon]);
      const [west, south, east, north] = image.boundingBox;
      const [x, y] = [(lon - west) / (east - west), (north - lat) / (north - south)];
      const { width, height, data } = PNG.sync.read(png);
      const at = (Math.round(y * (height - 1)) * width + Math.round(x * (width - 1))) * 4;
      assert.deepEqual([...data.subarray(at, at + 3)], [220, 20, 40]);
    });
  for (const path of WITHOUT)
    test(`${path} has none, and says why`, async () => {
      const service = (await loadServices()).find((each) => each.path === path);
      const { image, notes } = await bought(path, service?.example);
      assert.equal(image, null);
      assert(
        notes.some((note) => note.startsWith('image is null: ')),
        `${notes}`,
      );
    });
  test('the one door to five products hands the picture on', async () => {
    const { image } = await bought('satellite-earthdata', { product: 'sst', lat: 36.8, lon: -122 });
    await pngOf(await look(image.url));
  });
});

test('the fires of the answer are the dots of the picture, across the antimeridian too', async () => {
  const day = NOW_MS / 86_400_000 - 0.5;
  const places = Array.from({ length: 360 * 40 }, (_, at) =>
    fireIn(UPSTREAM_SEED, day, (at % 40) + 20, Math.floor(at / 40) - 180),
  );
  const eastmost = places.flatMap((fire) => (fire !== null && fire.minute < 720 ? fire : [])).at(-1);
  assert(eastmost !== undefined);
  const { image, data } = await bought('fire-alerts', {
    lat: Math.round(eastmost.latitude),
    lon: 179.9,
    radiusKm: 900,
  });
  const [west, south, east, north] = image.boundingBox;
  assert(west > east, `${image.boundingBox}`);
  const { width, height, data: pixels } = PNG.sync.read(await pngOf(await look(image.url)));
  const of = data.fires.filter((fire: { acqDate: string }) => fire.acqDate === image.observedAt);
  let seen = 0;
  for (const { lat, lon } of of) {
    const x = Math.floor((((lon - west + 360) % 360) / (east - west + 360)) * width);
    const y = Math.floor(((north - lat) / (north - south)) * height);
    const at = (y * width + x) * 4;
    if ((pixels[at] ?? 0) > 200 && (pixels[at + 1] ?? 255) < 100) seen += 1;
  }
  assert(of.length > 0 && seen === of.length, `${seen} of ${of.length} fires are on the picture`);
});

test('poles have pictures: the map ends there, and the ring stands at its edge', async () => {
  const { image } = await bought('weather-imagery', { lat: 90, lon: 0 });
  assert.equal(image.boundingBox[3], 90);
  await pngOf(await look(image.url));
});

test('a day before the map began has no picture, and its answer is sold all the same', async () => {
  const { image, notes } = await bought('flood-detection', { lat: 48.2, lon: 15.6, date: '2010-06-01' });
  assert.equal(image, null);
  assert(
    notes.some((note) => note.includes('2021-01-01')),
    `${notes}`,
  );
});

test('the same picture is the same on every replica, while the secret is changed and after', async () => {
  const ask = { lat: 41.6, lon: -93.6 };
  const made = [(await bought('vegetation', ask)).image, (await bought('vegetation', ask, there)).image];
  assert.notEqual(made[0].url, made[1].url, 'each signs with its own version');
  const looks = await Promise.all(made.flatMap(({ url }) => [look(url, {}, here), look(url, {}, there)]));
  const tags = looks.map(({ status, headers }) => `${status} ${headers.get('etag')}`);
  assert.equal(new Set(tags).size, 1, `${tags}`);
  assert.match(tags[0] ?? '', /^200 "[\w-]{43}"$/);
});

test('browsers and caches: HEAD, a tag, a time, any origin, and a type that is not guessed', async () => {
  const { image } = await bought('land-use', { lat: 41.6, lon: -93.6 });
  const response = await look(image.url, { headers: { origin: 'https://elsewhere.test' } });
  const bytes = await pngOf(response);
  const tag = response.headers.get('etag') ?? '';
  assert.deepEqual(
    ['access-control-allow-origin', 'cross-origin-resource-policy', 'x-content-type-options'].map((name) =>
      response.headers.get(name),
    ),
    ['*', 'cross-origin', 'nosniff'],
  );
  assert.equal(response.headers.get('cache-control'), 'public, max-age=3600');
  const head = await look(image.url, { method: 'HEAD' });
  assert.deepEqual(
    [head.status, head.headers.get('etag'), head.headers.get('content-length'), await head.text()],
    [200, tag, String(bytes.length), ''],
  );
  for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
    const same = await look(image.url, { headers: { 'if-none-match': known } });
    assert.deepEqual([same.status, await same.text()], [304, '']);
  }
  assert.equal((await look(image.url, { headers: { 'if-none-match': '"other"' } })).status, 200);
  const posted = await look(image.url, { method: 'POST' });
  assert.equal(posted.status, 405);
  assert.deepEqual(posted.headers.get('allow')?.split(', ').toSorted(), ['GET', 'HEAD']);
});

describe('who has no good address gets nothing, and the map server hears nothing of it:', () => {
  let url: string;
  let askedBefore: unknown;
  const asked = async () => (await jsonOf(fetch(`${upstreams.url}/__control/requests`))).requests.gibs;
  before(async () => {
    url = (await bought('earthdata-sst', { lat: 36.8, lon: -122 })).image.url;
    askedBefore = await asked();
    assert(Number(askedBefore) > 0);
  });
  after(async () => assert.equal(await asked(), askedBefore));
  const changes: [what: string, change: (query: URLSearchParams) => void][] = [
    ['another layer', (query) => query.set('layer', 'MODIS_Terra_NDVI_8Day')],
    ['a larger picture', (query) => query.set('size', '20000x20000')],
    ['another place', (query) => query.set('bbox', '0,0,1,1')],
    ['a later end', (query) => query.set('expires', '99999999999')],
    ['no signature', (query) => query.delete('signature')],
    ['another signature', (query) => query.set('signature', 'A'.repeat(43))],
    ['a part twice', (query) => query.append('layer', 'MODIS_Terra_NDVI_8Day')],
    ['a part too many', (query) => query.append('TRANSPARENT', 'FALSE')],
    ['a field of every object', (query) => query.append('__proto__', 'x')],
  ];
  for (const [what, change] of changes)
    test(what, async () => {
      const changed = new URL(url);
      change(changed.searchParams);
      const response = await look(changed.toString());
      const { code, error, requestId } = await jsonOf(response);
      assert.deepEqual([response.status, code, error], [403, 'PICTURE_LINK_INVALID', 'PICTURE_LINK_INVALID']);
      assert(typeof requestId === 'string');
      assert.equal(response.headers.get('cache-control'), 'no-store');
    });
  test('an address whose time is over', async () => {
    const asOf = nowMs;
    try {
      nowMs += 3 * HOUR_MS + 2_000;
      const response = await look(url);
      assert.deepEqual([response.status, (await jsonOf(response)).code], [410, 'PICTURE_LINK_ENDED']);
    } finally {
      nowMs = asOf;
    }
  });
});

test('pictures that the source fails to draw do not keep others from theirs', async () => {
  const links: string[] = [];
  for (const lat of [43.1, 43.2, 43.3])
    links.push((await bought('vegetation', { lat, lon: -93.6 })).image.url);
  const [good = '', ...broken] = links;
  await fault({ fault: 'status', status: 500 });
  try {
    for (const url of broken) assert.equal((await look(url)).status, 502);
  } finally {
    await noFaults();
  }
  // At once: the source was not taken for one that fails.
  await pngOf(await look(good));
});

describe('a source that fails costs the picture and never the answer:', () => {
  const cases: [what: string, set: object, status: number][] = [
    ['it answers 500', { fault: 'status', status: 500 }, 502],
    ['it answers a page', { fault: 'html' }, 502],
    ['it breaks off', { fault: 'reset' }, 502],
  ];
  for (const [at, [what, set, status]] of cases.entries())
    test(what, async () => {
      const lat = 41 + at / 10;
      // Both replicas have half of what the source allows, and the tests before have used it up.
      nowMs += 60_000;
      await fault(set);
      try {
        const { image } = await bought('vegetation', { lat, lon: -93.6 });
        const response = await look(image.url);
        const { code } = await jsonOf(response);
        assert.deepEqual([response.status, code], [status, 'PICTURE_SOURCE_FAILED']);
        assert(Number(response.headers.get('retry-after')) >= 1);
        await noFaults();
        // The breaker of the source lets it be asked again after a while.
        nowMs += 60_000;
        await pngOf(await look(image.url));
      } finally {
        await noFaults();
      }
    });
});
