import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StationObservation } from '../../upstreams/adapters/nws.ts';
import { NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import weatherStationData from './weather-station-data.ts';

const HOUR_MS = 3_600_000;
/** A degree of latitude is 111.2 km: stations to the north of where is asked, the nearest last. */
const STATIONS = [3, 0.5, 0.25, 0.125, 0.0625].map((north, index) => ({
  id: `KST${index}`,
  name: `Station ${index}`,
  lat: 40 + north,
  lon: -100,
}));
const observed = (hoursAgo: number): StationObservation => ({
  at: new Date(NOW_MS - hoursAgo * HOUR_MS).toISOString(),
  lat: 40,
  lon: -100,
  elevationM: null,
  description: '',
  temperatureC: { value: 21.5, quality: 'V' },
  dewpointC: null,
  humidityPercent: null,
  pressurePa: null,
  windSpeedKmh: null,
  windGustKmh: null,
  windDirectionDegrees: null,
  visibilityM: null,
  precipitationLastHourMm: null,
});

/** The service over these stations, and which of them it asked. @param latest what a station has observed, by its id */
function over(latest: Record<string, StationObservation>, stations = STATIONS) {
  const asked: string[] = [];
  const context = runContext({
    nws: {
      station: async (id) => reply('nws', stations.find((one) => one.id === id) ?? null),
      stationsNear: async () => reply('nws', stations),
      latest: async (id) => {
        asked.push(id);
        return reply('nws', latest[id] ?? null);
      },
    },
  });
  const run = async (body: object) => {
    const { fields } = await weatherStationData.run(weatherStationData.input.parse(body), context);
    return weatherStationData.output.parse(fields);
  };
  return { asked, run };
}
const HERE = { lat: 40, lon: -100 };

test('what no station near has observed for three hours is no observation of now', async () => {
  const { asked, run } = over({ KST4: observed(3.001), KST3: observed(3.001), KST1: observed(1) });
  const none = { status: 422, code: 'NO_OBSERVATION' };
  await assert.rejects(run({ ...HERE, radiusKm: 60 }), { ...none, field: 'lat' });
  // Three are asked, the nearest first.
  assert.deepEqual(asked, ['KST4', 'KST3', 'KST2']);
  await assert.rejects(run({ stationId: 'KST4' }), { ...none, field: 'stationId' });
});

test('the nearest station that has observed something within three hours is the answer', async () => {
  const { asked, run } = over({ KST3: observed(3), KST2: observed(0) });
  const { data } = await run({ ...HERE, radiusKm: 60 });
  assert.deepEqual(asked, ['KST4', 'KST3']);
  assert.partialDeepStrictEqual(data, { stationId: 'KST3', readings: { temperature: { value: 21.5 } } });
});

test('without a station in the circle the nearest ones outside are told', async () => {
  const { asked, run } = over({});
  const none = { status: 422, code: 'NO_STATION', field: 'radiusKm' };
  await assert.rejects(run({ ...HERE, radiusKm: 5 }), {
    ...none,
    message: /^There is no station within 5 km\. The nearest, KST4, is 6\.9\d* km away\.$/,
  });
  assert.deepEqual(asked, []);
  await assert.rejects(over({}, []).run({ ...HERE, radiusKm: 5 }), none);
});
