import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distanceKm } from '../services/shared/earth/great-circle.ts';
import { type Fix, travelOf } from './trips.ts';

const MINUTE_MS = 60_000;
/** One degree of a meridian is 111.195 km on a sphere of 6,371.0088 km. */
const fix = (minute: number, km: number, ignition: boolean | null = null): Fix => ({
  atMs: minute * MINUTE_MS,
  lat: km / 111.195,
  lon: 0,
  ignition,
});
const about = (value: number | undefined) => Math.round((value ?? Number.NaN) * 10) / 10;

test('a drive of 2 km in four minutes is one trip of 30 km/h', () => {
  const travel = travelOf([fix(0, 0), fix(2, 1), fix(4, 2)], distanceKm);
  assert.equal(travel.trips.length, 1);
  assert.equal(about(travel.distanceKm), 2);
  assert.equal(about(travel.trips[0]?.maxSpeedKmh), 30);
  assert.deepEqual([travel.trips[0]?.startedAtMs, travel.trips[0]?.endedAtMs], [0, 4 * MINUTE_MS]);
  assert.equal(travel.movingMs, 4 * MINUTE_MS);
  assert.equal(travel.idleMs, null);
});

test('a stop of up to five minutes belongs to the trip, a longer one ends it', () => {
  const short = [fix(0, 0), fix(2, 1), fix(7, 1.01), fix(9, 2)];
  assert.equal(travelOf(short, distanceKm).trips.length, 1);
  const long = [fix(0, 0), fix(2, 1), fix(8, 1.01), fix(10, 2)];
  assert.equal(travelOf(long, distanceKm).trips.length, 2);
});

test('what wanders at rest is no distance, and idle only with the ignition on', () => {
  const still = [fix(0, 0, true), fix(5, 0.02, true), fix(10, 0, false), fix(15, 0.01, false)];
  const travel = travelOf(still, distanceKm);
  assert.deepEqual([travel.trips.length, travel.distanceKm], [0, 0]);
  assert.equal(travel.idleMs, 5 * MINUTE_MS);
});

test('over more than ten minutes without a position nothing is said', () => {
  const travel = travelOf([fix(0, 0), fix(2, 1), fix(13, 8), fix(15, 9)], distanceKm);
  assert.equal(travel.trips.length, 2);
  assert.equal(about(travel.distanceKm), 2);
  assert.equal(travel.unknownMs, 11 * MINUTE_MS);
});
