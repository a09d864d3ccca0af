import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { modis } from './modis.ts';

const ASKED = {
  product: 'MOD13Q1',
  band: '250m_16_days_NDVI',
  lat: 40,
  lon: -105,
  first: '2025-12-31',
  last: '2026-02-01',
  reachKm: 0,
};

function recorded(change: Record<string, unknown> = {}, data: unknown[] = [4_123]): RawReply {
  return {
    body: JSON.stringify({
      // The corner of the pixel that holds 40 N, 105 W: 40 degrees of 6,371,007.181 m are 4,447,802.08 m.
      xllcorner: '-8944020.34',
      yllcorner: '4447802.08',
      cellsize: 231.65635826395825,
      nrows: 1,
      ncols: 1,
      band: '250m_16_days_NDVI',
      units: 'NDVI',
      scale: '0.0001',
      latitude: 40,
      longitude: -105,
      header: 'https://modis.ornl.gov/rst/api/v1/MOD13Q1/subset',
      subset: [
        {
          modis_date: 'A2026017',
          calendar_date: '2026-01-17',
          band: 'b',
          tile: 'h09v04',
          proc_date: '2026',
          data,
        },
        {
          modis_date: 'A2026001',
          calendar_date: '2026-01-01',
          band: 'b',
          tile: 'h09v04',
          proc_date: '2026',
          data: [-3_000],
        },
      ],
      ...change,
    }),
  };
}
const ask = (reply: RawReply) =>
  againstLocalServer(
    modis,
    {},
    () => reply,
    (api) => api.pixels(ASKED),
  );

it('asks by day of the year, and finds the pixel’s middle on the sinusoidal grid', () =>
  againstLocalServer(
    modis,
    {},
    () => recorded(),
    async (api, asked) => {
      const { value } = await api.pixels(ASKED);
      assert.equal(asked[0]?.url.pathname, '/base/api/v1/MOD13Q1/subset');
      const { startDate, endDate, band, kmAboveBelow } = Object.fromEntries(asked[0]?.url.searchParams ?? []);
      assert.deepEqual(
        [startDate, endDate, band, kmAboveBelow],
        ['A2025365', 'A2026032', '250m_16_days_NDVI', '0'],
      );
      assert.deepEqual(
        value?.composites.map(({ day, pixels }) => [day, pixels[0]?.value]),
        [
          ['2026-01-01', -3_000],
          ['2026-01-17', 4_123],
        ],
      );
      const [pixel] = value?.composites[0]?.pixels ?? [];
      assert.ok(
        pixel !== undefined && Math.abs(pixel.lat - 40) < 0.0021 && Math.abs(pixel.lon + 105) < 0.0028,
        `${pixel?.lat} ${pixel?.lon}`,
      );
    },
  ));

it('reads rows from the north and columns from the west', async () => {
  const { value } = await ask(
    recorded({
      nrows: 2,
      ncols: 2,
      subset: [{ calendar_date: '2026-01-01', band: 'b', data: [1, 2, 3, 4] }],
    }),
  );
  const [a, b, c] = value?.composites[0]?.pixels ?? [];
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  assert.ok(a.lat > c.lat && b.lon > a.lon && a.lat === b.lat);
});

it('has no value where there is no tile, and refuses a reply that is not a subset', async () => {
  assert.equal((await ask({ status: 404, body: 'No tile' })).value, null);
  for (const wrong of [
    recorded({}, [1, 2]),
    recorded({}, ['NaN']),
    recorded({ cellsize: 0 }),
    recorded({ subset: [{ calendar_date: '2019-01-01', band: 'b', data: [1] }] }),
    { body: 'Number of modis dates requested exceeds the limit of 10' },
    { status: 400, body: 'Dates are not valid' },
    { body: '<html></html>' },
  ]) {
    await assert.rejects(ask(wrong), UpstreamUnavailable, JSON.stringify(wrong));
  }
});
