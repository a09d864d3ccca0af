import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '../../../core/src/http/problem.ts';
import { secretsOf } from '../../../core/src/secrets/secrets.ts';
import type { MapPicture } from '../services/map-pictures.ts';
import { createPictureLinks } from './links.ts';

const OLD = 'the-secret-of-yesterday-in-this-test';
const NEW = 'the-secret-of-tomorrow-in-this-test';
const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse('2026-11-21T05:30:00.500Z');
const picture: MapPicture = {
  layer: 'MODIS_Terra_L3_NDVI_16Day',
  time: '2026-10-16',
  box: { west: 179.2, south: -1.5, east: -179.3, north: 0.000001 },
  widthPx: 512,
  heightPx: 300,
  marker: { lat: -0.75, lon: -180 },
};

function linksOf(secrets: string[], nowMs = NOW_MS) {
  const parts = { baseUrl: 'https://shop.test', linkMs: HOUR_MS, nowMs: () => nowMs };
  return createPictureLinks({ ...parts, secrets: secretsOf(secrets) });
}
const queryOf = (url: string) => Object.fromEntries(new URL(url).searchParams);
function refusal(run: () => unknown): [number, string] {
  try {
    run();
  } catch (error) {
    assert(error instanceof Problem, String(error));
    return [error.status, error.code];
  }
  return [200, ''];
}
const INVALID = [403, 'PICTURE_LINK_INVALID'];
const ENDED = [410, 'PICTURE_LINK_ENDED'];

test('an address says all of its picture, and is read as it was made', () => {
  const links = linksOf([NEW]);
  for (const each of [picture, { ...picture, marker: null, time: '2026-10-16T04:50:00Z' }]) {
    const { url, expiresAtMs } = links.linkTo(each);
    assert.match(url, /^https:\/\/shop\.test\/api\/pictures\/map\.png\?/);
    assert.deepEqual(links.read(queryOf(url)), { picture: each, expiresAtMs });
    assert(expiresAtMs >= NOW_MS + HOUR_MS && expiresAtMs < NOW_MS + HOUR_MS + 1_000);
    assert(!url.includes(NEW));
  }
});

describe('what is not as it was signed is refused:', () => {
  const good = queryOf(linksOf([NEW]).linkTo(picture).url);
  const changes: Record<string, Record<string, unknown>> = {
    'another layer': { layer: 'GHRSST_L4_MUR_Sea_Surface_Temperature' },
    'a layer that is none': { layer: '../../wmts.cgi?x=' },
    'another day': { time: '2026-10-17' },
    'another box': { bbox: '0,0,1,1' },
    'the same box, spelled differently': { bbox: good.bbox?.replace('-1.5', '-1.50') },
    'a huge size': { size: '20000x20000' },
    'another marker': { marker: '0,0' },
    'no marker': { marker: 'none' },
    'a later end': { expires: '99999999999' },
    'an end that is none': { expires: 'NaN' },
    'no signature': { signature: '' },
    'a shorter signature': { signature: good.signature?.slice(0, 42) },
    'a longer one': { signature: `${good.signature}A` },
    'a signature that decodes to the same bytes': { signature: lastBitsChanged(good.signature ?? '') },
    'a signature of nothing': { signature: 'A'.repeat(43) },
    'a part twice': { layer: [good.layer, good.layer] },
    'a part too many': { style: 'x' },
    'a line feed that moves a border': { layer: `${good.layer}\n${good.time}` },
    'a part without end': { layer: 'M'.repeat(100_000) },
  };
  for (const [what, change] of Object.entries(changes))
    test(what, () =>
      assert.deepEqual(
        refusal(() => linksOf([NEW]).read({ ...good, ...change })),
        INVALID,
      ),
    );
  for (const name of Object.keys(good))
    test(`without ${name}`, () => {
      const { [name]: _left, ...rest } = good;
      assert.deepEqual(
        refusal(() => linksOf([NEW]).read(rest)),
        INVALID,
      );
    });
  test('nothing at all', () => {
    for (const query of [undefined, null, '', {}, []])
      assert.deepEqual(
        refusal(() => linksOf([NEW]).read(query)),
        INVALID,
      );
  });
  test('signed with another secret', () => {
    const foreign = queryOf(linksOf(['a-secret-of-somebody-else-entirely!!']).linkTo(picture).url);
    assert.deepEqual(
      refusal(() => linksOf([NEW]).read({ ...foreign, version: good.version })),
      INVALID,
    );
  });
});

/** The last of 43 characters has two bits that decoding drops. */
function lastBitsChanged(signature: string): string {
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = ALPHABET.indexOf(signature.at(-1) ?? '');
  const other = signature.slice(0, -1) + ALPHABET[last ^ 1];
  assert.deepEqual(Buffer.from(other, 'base64url'), Buffer.from(signature, 'base64url'));
  return other;
}

test('an address ends at its time, to the second, and only who has a good one is told', () => {
  const { url, expiresAtMs } = linksOf([NEW]).linkTo(picture);
  const query = queryOf(url);
  assert.deepEqual(
    refusal(() => linksOf([NEW], expiresAtMs - 1).read(query)),
    [200, ''],
  );
  assert.deepEqual(
    refusal(() => linksOf([NEW], expiresAtMs).read(query)),
    ENDED,
  );
  assert.deepEqual(
    refusal(() => linksOf([NEW], expiresAtMs).read({ ...query, size: '1x1' })),
    INVALID,
  );
});

test('a secret is changed as the documents say: every address is read until its version is taken away', () => {
  const before = queryOf(linksOf([OLD]).linkTo(picture).url);
  // Replicas on both sides of a change read what the others sign.
  const steps = [[OLD], [OLD, NEW], [NEW, OLD], [NEW]];
  for (const [at, secrets] of steps.entries()) {
    const next = steps[at + 1];
    if (next === undefined) break;
    const made = queryOf(linksOf(secrets).linkTo(picture).url);
    const madeNext = queryOf(linksOf(next).linkTo(picture).url);
    if (at < 2)
      assert.deepEqual(
        refusal(() => linksOf(next).read(made)),
        [200, ''],
      );
    assert.deepEqual(
      refusal(() => linksOf(secrets).read(madeNext)),
      [200, ''],
    );
  }
  assert.deepEqual(
    refusal(() => linksOf([NEW, OLD]).read(before)),
    [200, ''],
  );
  assert.deepEqual(
    refusal(() => linksOf([NEW]).read(before)),
    ENDED,
  );
});
