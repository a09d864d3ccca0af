import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boxesAround, distanceKm, split } from './great-circle.ts';

test('distances: a quarter of the equator, a degree of a meridian, across the antimeridian, from pole to pole', () => {
  // 6371.0088 km times half of pi, times pi / 180, and times pi.
  assert.equal(distanceKm({ lat: 0, lon: 0 }, { lat: 0, lon: 90 }), 10_007.557);
  assert.equal(distanceKm({ lat: 10, lon: 20 }, { lat: 11, lon: 20 }), 111.195);
  assert.equal(distanceKm({ lat: 0, lon: 179.5 }, { lat: 0, lon: -179.5 }), 111.195);
  assert.equal(distanceKm({ lat: 90, lon: 0 }, { lat: -90, lon: 123 }), 20_015.114);
  assert.equal(distanceKm({ lat: 90, lon: 0 }, { lat: 90, lon: 123 }), 0);
});

test('a box around a point holds the whole circle', () => {
  for (const center of [
    { lat: 37.77, lon: -122.42 },
    { lat: 71, lon: 25 },
    { lat: -45, lon: 179.9 },
  ]) {
    const boxes = boxesAround(center, 100);
    for (let bearing = 0; bearing < 360; bearing += 5) {
      // A point 99.9 km away, by the formula for the destination along a great circle.
      const [arc, turn, lat] = [99.9 / 6_371.0088, (bearing * Math.PI) / 180, (center.lat * Math.PI) / 180];
      const there = Math.asin(Math.sin(lat) * Math.cos(arc) + Math.cos(lat) * Math.sin(arc) * Math.cos(turn));
      const east =
        (center.lon * Math.PI) / 180 +
        Math.atan2(
          Math.sin(turn) * Math.sin(arc) * Math.cos(lat),
          Math.cos(arc) - Math.sin(lat) * Math.sin(there),
        );
      const point = { lat: (there * 180) / Math.PI, lon: (((east * 180) / Math.PI + 540) % 360) - 180 };
      assert.ok(
        boxes.some(
          ({ west, south, east: edge, north }) =>
            point.lon >= west && point.lon <= edge && point.lat >= south && point.lat <= north,
        ),
        `${JSON.stringify(center)} ${bearing}`,
      );
    }
  }
});

test('a box is cut at the antimeridian, and holds all longitudes at a pole', () => {
  assert.deepEqual(split({ west: 170, south: -10, east: -170, north: 10 }), [
    { west: 170, south: -10, east: 180, north: 10 },
    { west: -180, south: -10, east: -170, north: 10 },
  ]);
  assert.equal(boxesAround({ lat: -45, lon: 179.9 }, 100).length, 2);
  assert.deepEqual(
    boxesAround({ lat: 89.9, lon: 12 }, 100).map(({ west, east, north }) => [west, east, north]),
    [[-180, 180, 90]],
  );
});
