import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { ChlorophyllCell } from '../../upstreams/adapters/erddap.ts';
import type { PowerDay } from '../../upstreams/adapters/power.ts';
import { type FakeUpstreams, notConfigured, reply, runContext } from '../run-context.fixture.ts';
import granules from './earthdata-granules.ts';
import oceanColor from './earthdata-ocean-color.ts';
import precipitation from './earthdata-precipitation.ts';
import soilMoisture from './earthdata-soil-moisture.ts';
import earthdata from './satellite-earthdata.ts';

const failsWith = (status: number, code: string, field?: string) => (error: unknown) => {
  assert.ok(error instanceof ServiceFailure, String(error));
  assert.deepEqual([error.status, error.code, error.field], [status, code, field]);
  return true;
};

type Service = typeof granules;
async function run(service: Service, body: Record<string, unknown>, fakes: FakeUpstreams) {
  const made = await service.run(service.input.parse(service.adapt?.(body) ?? body), runContext(fakes));
  const fields = service.output.parse(made.fields) as { data: Record<string, unknown> };
  return { ...made, data: fields.data };
}

/** POWER with the given days; tells what it was asked for. */
function weather(days: PowerDay[], asked: { first: string; last: string }[] = []): FakeUpstreams {
  return {
    power: {
      daily: async ({ first, last }) => {
        asked.push({ first, last });
        return reply('power', { days, madeFrom: ['MERRA2'], units: {} });
      },
    },
  };
}
const day = (name: string, ...values: (number | null)[]): PowerDay => ({ day: name, values });

describe('earthdata-precipitation', () => {
  const week = [
    day('2026-11-15', 2.4),
    day('2026-11-16', 0),
    day('2026-11-17', 12),
    day('2026-11-18', null),
    day('2026-11-19', null),
  ];

  it('takes the newest published day, says its unit and how far its cell is', async () => {
    const asked: { first: string; last: string }[] = [];
    const { data, sources, notes } = await run(
      precipitation,
      { lat: '37.77', lon: 237.58, hoursBack: 72 },
      weather(week, asked),
    );
    assert.deepEqual(
      [data.precipitationMm24hr, data.precipitationMmHr, data.precipitationMmPeriod, data.periodDays],
      [12, 0.5, 14.4, 3],
    );
    assert.deepEqual([data.observedAt, data.gridLat, data.gridLon], ['2026-11-17', 38, -122.5]);
    // 0.23 degrees of latitude and 0.08 of longitude at 38 degrees: about 25.6 and 7.0 km.
    assert.ok(Math.abs(Number(data.distanceKm) - 26.54) < 0.1, String(data.distanceKm));
    assert.equal(sources[0]?.asOf, '2026-11-17T00:00:00.000Z');
    assert.ok(notes[0]?.includes('2026-11-17'));
    assert.deepEqual(asked, [{ first: '2026-11-05', last: '2026-11-21' }]);
  });

  it('has no sum over days of which one is missing', async () => {
    const { data, notes } = await run(precipitation, { lat: 0, lon: 0, hoursBack: 24 * 8 }, weather(week));
    assert.equal(data.precipitationMmPeriod, null);
    assert.ok(notes.some((note) => note.includes('precipitationMmPeriod is null')));
  });

  it('has nothing to say of a day that is to come, not published, before the record or masked', async () => {
    const body = { lat: 37.77, lon: -122.42 };
    const none = weather([day('2026-11-20', null)]);
    await assert.rejects(
      run(precipitation, { ...body, date: '2026-11-22' }, none),
      failsWith(400, 'INVALID_REQUEST', 'date'),
    );
    await assert.rejects(
      run(precipitation, { ...body, date: '1980-12-31' }, none),
      failsWith(422, 'BEFORE_RECORD', 'date'),
    );
    await assert.rejects(
      run(precipitation, { ...body, date: '2026-11-20' }, none),
      failsWith(422, 'NOT_PUBLISHED', 'date'),
    );
    await assert.rejects(
      run(precipitation, { ...body, date: '2020-01-01' }, weather([day('2020-01-01', null)])),
      failsWith(422, 'NO_DATA', 'date'),
    );
    // Another day than the one asked for is not passed off as it.
    await assert.rejects(
      run(precipitation, { ...body, date: '2026-11-18', hoursBack: 72 }, weather(week)),
      failsWith(422, 'NOT_PUBLISHED', 'date'),
    );
  });

  it('answers at the poles, on both sides of the antimeridian and on the first day of the record', async () => {
    for (const [lat, lon, gridLon] of [
      [90, 0, 0],
      [-90, 179.9, 180],
      [0, -180, -180],
    ] as const) {
      const { data } = await run(precipitation, { lat, lon }, weather(week));
      assert.equal(data.gridLon, gridLon);
    }
    const asked: { first: string; last: string }[] = [];
    await run(
      precipitation,
      { lat: 0, lon: 0, date: '1981-01-01', hoursBack: 240 },
      weather([day('1981-01-01', 1)], asked),
    );
    assert.deepEqual(asked, [{ first: '1981-01-01', last: '1981-01-01' }]);
  });
});

describe('earthdata-soil-moisture', () => {
  const land = [day('2026-11-16', 0.4, 0.5, 0.55, 3), day('2026-11-17', 0.41, 0.5, 0.55, 0)];
  const unlicensed = { openmeteoarchive: { soilMoisture: notConfigured('openmeteoarchive') } };

  it('names fractions as fractions, and has no m³/m³ without a licensed source', async () => {
    const { data, notes } = await run(
      soilMoisture,
      { lat: 41.6, lon: -93.6 },
      { ...weather(land), ...unlicensed },
    );
    assert.equal(data.soilMoistureM3M3, null);
    assert.equal(data.surfaceWetnessFraction, 0.41);
    assert.ok(
      notes.some((note) => note === 'soilMoistureM3M3 is null: this server has no licensed source of it.'),
    );
  });

  it('takes m³/m³ of the same day from the licensed source, with its own distance', async () => {
    const days: string[] = [];
    const { data, sources } = await run(
      soilMoisture,
      { lat: 41.6, lon: -93.6 },
      {
        ...weather(land),
        openmeteoarchive: {
          soilMoisture: async ({ day: asked }) => {
            days.push(asked);
            return reply('openmeteoarchive', { lat: 41.6, lon: -93.5, surfaceM3M3: 0.287 });
          },
        },
      },
    );
    assert.deepEqual([data.soilMoistureM3M3, days], [0.287, ['2026-11-17']]);
    assert.ok(Math.abs(Number(data.soilMoistureDistanceKm) - 8.315) < 0.01);
    assert.deepEqual(
      sources.map(({ name }) => name),
      ['power', 'openmeteoarchive'],
    );
  });

  it('has no answer at sea, whichever way the source writes it', async () => {
    for (const sea of [
      [day('2026-11-17', null, null, null, 4.2)],
      [day('2026-11-16', 1, 1, 1, 4.2), day('2026-11-17', 1, 1, 1, 0)],
    ]) {
      await assert.rejects(
        run(soilMoisture, { lat: 0, lon: -140 }, { ...weather(sea), ...unlicensed }),
        failsWith(422, 'NOT_LAND', 'lat'),
      );
    }
    await assert.rejects(
      run(soilMoisture, { lat: 0, lon: -140 }, weather([day('2026-11-20', null, null, null, null)])),
      failsWith(422, 'NOT_PUBLISHED', 'date'),
    );
  });
});

describe('earthdata-ocean-color', () => {
  const times = ['2026-11-17T12:00:00Z', '2026-11-18T12:00:00Z'];
  const cell = (time: string, lat: number, lon: number, mgM3: number): ChlorophyllCell => ({
    time,
    lat,
    lon,
    mgM3,
  });
  const sea = (cells: ChlorophyllCell[], celsius: number | null = 14, known = times): FakeUpstreams => ({
    erddap: {
      chlorophyll: async () => ({ ...reply('erddap', { times: known, cells }), cellDegrees: 0.0375 }),
      seaSurfaceTemperature: async () =>
        reply('erddap', { time: times[1] ?? '', lat: 36.2, lon: -123.5, celsius }),
    },
  });
  const body = { lat: 36.2, lon: -123.5 };

  it('takes the nearest clear cell of the newest clear day, with its distance', async () => {
    const { data } = await run(
      oceanColor,
      body,
      sea([
        cell(times[0] ?? '', 36.2, -123.5, 0.05),
        cell(times[1] ?? '', 36.3, -123.5, 1.5),
        cell(times[1] ?? '', 36.25, -123.5, 0.4),
      ]),
    );
    assert.deepEqual(
      [
        data.chlorophyllMgM3,
        data.trophicState,
        data.quality,
        data.distanceKm,
        data.clearCells,
        data.observedAt,
      ],
      [0.4, 'mesotrophic', 'measured nearby', 5.56, 2, times[1]],
    );
    const here = await run(oceanColor, body, sea([cell(times[1] ?? '', 36.21, -123.5, 1.5)]));
    assert.deepEqual([here.data.quality, here.data.trophicState], ['measured at the point', 'eutrophic']);
  });

  it('tells land from clouds, and what is not covered from both', async () => {
    await assert.rejects(run(oceanColor, body, sea([], null)), failsWith(422, 'NOT_SEA', 'lat'));
    // Clear water a few kilometers off does not make land a sea.
    await assert.rejects(
      run(oceanColor, body, sea([cell(times[1] ?? '', 36.3, -123.5, 1)], null)),
      failsWith(422, 'NOT_SEA', 'lat'),
    );
    await assert.rejects(run(oceanColor, body, sea([])), failsWith(422, 'CLOUDS', 'date'));
    await assert.rejects(run(oceanColor, body, sea([], 14, [])), failsWith(422, 'OUT_OF_RANGE', 'lat'));
    await assert.rejects(
      run(oceanColor, { ...body, date: '2026-11-19' }, sea([cell(times[1] ?? '', 36.2, -123.5, 1)])),
      failsWith(422, 'OUT_OF_RANGE', 'date'),
    );
    await assert.rejects(
      run(oceanColor, { ...body, date: '2011-01-01' }, sea([])),
      failsWith(422, 'BEFORE_RECORD', 'date'),
    );
  });
});

describe('earthdata-granules', () => {
  const asked: Record<string, unknown>[] = [];
  const search: FakeUpstreams = {
    cmr: {
      granules: async (query) => {
        asked.push(query as unknown as Record<string, unknown>);
        return reply('cmr', { hits: 0, granules: [] });
      },
    },
  };

  it('searches around a point, across the antimeridian and at a pole', async () => {
    for (const [body, box] of [
      [{ lat: 37.77, lon: -122.42 }, [-122.92, 37.27, -121.92, 38.27]],
      [{ lat: 0, lon: 179.8 }, [179.3, -0.5, -179.7, 0.5]],
      [{ lat: -90, lon: 0 }, [-0.5, -90, 0.5, -89.5]],
      [{ bbox: '170, -10, -170, 10' }, [170, -10, -170, 10]],
      [{ west: 1, south: '2', east: 3, north: 4 }, [1, 2, 3, 4]],
      [{}, null],
    ] as const) {
      const { data } = await run(granules, body, search);
      assert.deepEqual(data.bbox, box);
    }
    assert.deepEqual([asked[0]?.first, asked[0]?.last], ['2026-10-22', '2026-11-21']);
  });

  it('refuses boxes and days that cannot be meant, before it asks', async () => {
    const before = asked.length;
    for (const [body, field] of [
      [{ bbox: [0, 10, 1, 5] }, 'bbox'],
      [{ bbox: [0, 0, 181, 5] }, 'bbox'],
      [{ lat: 5 }, 'lon'],
      [{ endDate: '2026-11-22' }, 'endDate'],
      [{ startDate: '2026-11-02', endDate: '2026-11-01' }, 'startDate'],
    ] as const) {
      await assert.rejects(run(granules, body, search), failsWith(400, 'INVALID_REQUEST', field));
    }
    assert.equal(asked.length, before);
    for (const body of [
      { bbox: '1,2,,4' },
      { limit: 51 },
      { maxCloudCover: 101 },
      { startDate: '2026-02-30' },
    ]) {
      assert.equal(granules.input.safeParse(body).success, false, JSON.stringify(body));
    }
  });
});

describe('satellite-earthdata', () => {
  it('answers as the service of the product, by its other names too', async () => {
    const fakes = weather([day('2026-11-17', 12)]);
    const { data, fields } = await run(earthdata, { product: 'Precipitation', lat: 1, lon: 2 }, fakes);
    const alone = await run(precipitation, { lat: 1, lon: 2 }, fakes);
    assert.deepEqual(data, alone.data);
    assert.equal(fields.product, 'precipitation');
    for (const [name, product] of [
      ['ocean_temp', 'sst'],
      ['Sea surface temperature', 'sst'],
      ['chlorophyll', 'ocean-color'],
      ['soil_moisture', 'soil-moisture'],
    ]) {
      assert.equal(
        (earthdata.input.parse({ product: name, lat: 1, lon: 2 }) as { product: string }).product,
        product,
      );
    }
  });

  it('does not answer an unknown product as another, nor one without its place', async () => {
    assert.equal(earthdata.input.safeParse({ product: 'snow', lat: 1, lon: 2 }).success, false);
    const without = earthdata.input.safeParse({ product: 'sst', lat: 1 });
    assert.deepEqual(without.error?.issues[0]?.path, ['lon']);
    assert.equal(earthdata.input.safeParse({ product: 'granules' }).success, true);
    await assert.rejects(
      run(earthdata, { product: 'precipitation', lat: 1, lon: 2, date: '2026-11-22' }, {}),
      failsWith(400, 'INVALID_REQUEST', 'date'),
    );
  });
});
