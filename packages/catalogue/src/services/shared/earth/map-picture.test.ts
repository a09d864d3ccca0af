import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SEA_TEMPERATURE_MAP, VEGETATION_MAP } from '../../../upstreams/adapters/gibs-maps.ts';
import type { MapPicture, PictureBox } from '../../map-pictures.ts';
import { boxAround, image, noPicture, pictureOf } from './map-picture.ts';

function shown(box: PictureBox, marker: { lat: number; lon: number } | null = null) {
  const asked: MapPicture[] = [];
  const pictures = {
    linkTo(picture: MapPicture) {
      asked.push(picture);
      return { url: 'https://shop.test/picture', expiresAtMs: Date.parse('2026-11-28T00:00:00Z') };
    },
  };
  const made = pictureOf(pictures, { map: VEGETATION_MAP, time: '2026-10-16', box, marker });
  const [picture] = asked;
  assert(picture !== undefined && made.image !== null);
  image.parse(made.image);
  return { ...picture, image: made.image };
}

test('the answer says what the picture is of: the box that was drawn, and where the ring is', () => {
  const { image: told, box } = shown({ west: 10, south: 40, east: 12, north: 41 }, { lat: 40.5, lon: 11 });
  assert.deepEqual([told.widthPx, told.heightPx], [512, 256]);
  assert.deepEqual(told.boundingBox, [box.west, box.south, box.east, box.north]);
  assert.deepEqual(
    [told.layer, told.observedAt, told.marker, told.expiresAt],
    ['MODIS_Terra_L3_NDVI_16Day', '2026-10-16', { lat: 40.5, lon: 11 }, '2026-11-28T00:00:00.000Z'],
  );
});

test('a place has a ring on the edge of the box too, and none outside', () => {
  const box = { west: 10.1, south: 40.3, east: 12.7, north: 41.9 };
  const corners = [box.south, box.north].flatMap((lat) => [box.west, box.east].map((lon) => ({ lat, lon })));
  for (const corner of corners) assert.deepEqual(shown(box, corner).image.marker, corner);
  for (const outside of [
    { lat: 41, lon: 12.8 },
    { lat: 41, lon: 10 },
    { lat: 42, lon: 11 },
    { lat: -41, lon: 11 },
  ]) {
    const { marker, image: told } = shown(box, outside);
    assert.deepEqual([marker, told.marker], [null, null]);
  }
});

test('the box around a place lies on the map, at its poles and at its edges too', () => {
  // 111.195 km are a degree: by hand, a degree to each side, and at 60 degrees north two of longitude.
  assert.deepEqual(shown(boxAround({ lat: 0, lon: 20 }, 111.195)).box, {
    west: 19,
    south: -1,
    east: 21,
    north: 1,
  });
  assert.deepEqual(shown(boxAround({ lat: 60, lon: 179 }, 111.195)).box, {
    west: 177,
    south: 59,
    east: -179,
    north: 61,
  });
  for (const lat of [90, -90, 89.99, -75, 0]) {
    for (const lon of [-180, -179.99, 0, 179.99, 180]) {
      for (const reachKm of [1, 60, 1_000]) {
        const { box, widthPx, heightPx } = shown(boxAround({ lat, lon }, reachKm));
        assert(box.south >= -90 && box.north <= 90 && box.south < box.north, `${lat} ${lon} ${reachKm}`);
        assert(Math.abs(box.west) <= 180 && Math.abs(box.east) <= 180 && box.west !== box.east);
        assert(box.south <= lat && lat <= box.north);
        assert(Math.max(widthPx, heightPx) === 512 && Math.min(widthPx, heightPx) >= 102, `${widthPx}`);
      }
    }
  }
});

test('a line, a point and a strip are made wide enough to be looked at', () => {
  for (const box of [
    { west: 10, south: 40, east: 10, north: 40 },
    { west: 10, south: -90, east: 10, north: 90 },
    { west: -180, south: 0, east: 180, north: 0.001 },
    { west: 179.9, south: 89.9999, east: -179.9, north: 90 },
    { west: 180, south: 0, east: 180, north: 1 },
  ]) {
    const { widthPx, heightPx, box: made } = shown(box);
    assert(Math.max(widthPx, heightPx) === 512 && Math.min(widthPx, heightPx) >= 102, JSON.stringify(made));
    assert(made.south >= -90 && made.north <= 90 && made.south <= box.south && made.north >= box.north);
  }
});

test('without a source of maps, or a map, the answer has no picture and says why', () => {
  const place = { box: { west: 1, south: 1, east: 2, north: 2 }, marker: null, time: '2026-11-01' };
  for (const pictures of [undefined, { linkTo: () => null }]) {
    const made = pictureOf(pictures, { map: SEA_TEMPERATURE_MAP, ...place });
    assert.equal(made.image, null);
    assert.match(made.notes[0] ?? '', /^image is null: /);
  }
  assert.equal(noPicture('it is so.').notes[0], 'image is null: it is so.');
});
