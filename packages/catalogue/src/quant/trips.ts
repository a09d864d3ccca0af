/**
 * Trips of a vehicle from its positions, by rules that stand here and in the answer:
 *
 * - Two positions one after another are a leg. Its length is the great circle between them, its speed that
 *   length by its time.
 * - A leg of more than `MAX_GAP_MS` is a gap: what happened in it nobody knows, so it counts for nothing.
 * - The vehicle moves in a leg whose speed is at least `MOVING_KMH`. Below that it stands: positions of a vehicle at rest
 *   wander by some meters.
 * - A trip is a row of moving legs; standing for up to `STOP_MS` on the way belongs to it. A gap ends it.
 * - Idle time is standing with the ignition on at both ends of a leg. Without a word about the ignition it is unknown.
 */
export const MAX_GAP_MS = 600_000;
export const MOVING_KMH = 3;
export const STOP_MS = 300_000;

export interface Fix {
  atMs: number;
  lat: number;
  lon: number;
  /** Null: it does not say. */
  ignition: boolean | null;
}

export interface Trip {
  startedAtMs: number;
  endedAtMs: number;
  distanceKm: number;
  from: { lat: number; lon: number };
  to: { lat: number; lon: number };
  maxSpeedKmh: number;
}

export interface Travel {
  trips: Trip[];
  /** Of all trips. */
  distanceKm: number;
  /** In moving legs. */
  movingMs: number;
  /** Null where no leg says whether the ignition was on. */
  idleMs: number | null;
  /** In gaps. */
  unknownMs: number;
}

/** @param fixes by time, oldest first @param distanceKm along a great circle */
export function travelOf(fixes: readonly Fix[], distanceKm: (from: Fix, to: Fix) => number): Travel {
  const trips: Trip[] = [];
  let trip: Trip | null = null;
  let movingMs = 0;
  let unknownMs = 0;
  let idleMs: number | null = null;
  for (const [index, to] of fixes.entries()) {
    const from = fixes[index - 1];
    if (from === undefined) continue;
    const tookMs = to.atMs - from.atMs;
    if (tookMs <= 0) continue;
    if (tookMs > MAX_GAP_MS) {
      unknownMs += tookMs;
      trip = null;
      continue;
    }
    const km = distanceKm(from, to);
    const kmh = km / (tookMs / 3_600_000);
    if (kmh < MOVING_KMH) {
      if (from.ignition !== null && to.ignition !== null)
        idleMs = (idleMs ?? 0) + (from.ignition && to.ignition ? tookMs : 0);
      continue;
    }
    movingMs += tookMs;
    if (trip === null || from.atMs - trip.endedAtMs > STOP_MS) {
      trip = {
        startedAtMs: from.atMs,
        endedAtMs: to.atMs,
        distanceKm: 0,
        from: { lat: from.lat, lon: from.lon },
        to: { lat: to.lat, lon: to.lon },
        maxSpeedKmh: 0,
      };
      trips.push(trip);
    }
    trip.endedAtMs = to.atMs;
    trip.to = { lat: to.lat, lon: to.lon };
    trip.distanceKm += km;
    trip.maxSpeedKmh = Math.max(trip.maxSpeedKmh, kmh);
  }
  return {
    trips,
    distanceKm: trips.reduce((sum, each) => sum + each.distanceKm, 0),
    movingMs,
    idleMs,
    unknownMs,
  };
}
