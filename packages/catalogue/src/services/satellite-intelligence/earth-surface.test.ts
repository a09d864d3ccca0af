import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { FireDetection } from '../../upstreams/adapters/firms.ts';
import { VEGETATION_INDEX } from '../../upstreams/adapters/modis.ts';
import { type FakeUpstreams, NOW_MS, reply, runContext } from '../run-context.fixture.ts';
import airQuality from './air-quality.ts';
import fireAlerts from './fire-alerts.ts';
import floods from './flood-detection.ts';
import landUse from './land-use.ts';
import vegetation from './vegetation.ts';

const failsWith = (status: number, code: string, field?: string) => (error: unknown) => {
  assert.ok(error instanceof ServiceFailure, String(error));
  assert.deepEqual([error.status, error.code, error.field], [status, code, field]);
  return true;
};

type Service = typeof fireAlerts;
async function run(service: Service, body: Record<string, unknown>, fakes: FakeUpstreams) {
  const made = await service.run(service.input.parse(service.adapt?.(body) ?? body), runContext(fakes));
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  const fields = service.output.parse(made.fields) as { data: any };
  return { ...made, data: fields.data };
}

describe('fire-alerts', () => {
  const fire = (lat: number, lon: number, at: string, frpMw: number | null = 4): FireDetection => ({
    lat,
    lon,
    brightnessKelvin: 331.4,
    frpMw,
    confidence: 'nominal',
    confidenceAsGiven: 'n',
    satellite: 'N20',
    instrument: 'VIIRS',
    at,
    daynight: 'night',
    scanKm: 0.39,
    trackKm: 0.44,
  });
  function sky(
    fires: FireDetection[],
    asked: { first: string; days: number; west: number }[] = [],
  ): FakeUpstreams {
    return {
      firms: {
        fires: async ({ first, days, box }) => {
          asked.push({ first, days, west: box.west });
          return reply('firms', fires);
        },
      },
    };
  }

  it('asks twice for ten days, once for one, and never beyond what the source allows', async () => {
    for (const [days, expected] of [
      [1, [{ first: '2026-11-20', days: 2 }]],
      [
        10,
        [
          { first: '2026-11-12', days: 5 },
          { first: '2026-11-17', days: 5 },
        ],
      ],
    ] as const) {
      const asked: { first: string; days: number }[] = [];
      await run(fireAlerts, { lat: 10, lon: 20, days }, sky([], asked as never));
      assert.deepEqual(
        asked.map(({ first, days: many }) => ({ first, days: many })),
        expected,
      );
    }
  });

  it('keeps to the radius and the time, nearest first', async () => {
    const { data } = await run(
      fireAlerts,
      { latitude: 10, longitude: 20, lat: 10, lon: 20, radiusKm: '100' },
      sky([
        fire(10.5, 20, '2026-11-21T01:00:00.000Z'),
        fire(10.1, 20, '2026-11-20T23:59:00.000Z'),
        fire(10.9, 20, '2026-11-21T01:00:00.000Z'),
        fire(10.1, 20, '2026-11-20T05:29:00.000Z'),
        fire(10.1, 20, '2026-11-21T06:00:00.000Z'),
      ]),
    );
    assert.equal(data.count, 2);
    assert.deepEqual(
      data.fires.map(({ distanceKm, acqTime }: { distanceKm: number; acqTime: string }) => [
        distanceKm,
        acqTime,
      ]),
      [
        [11.12, '23:59'],
        [55.598, '01:00'],
      ],
    );
    assert.equal(data.dataDate, '2026-11-21T01:00:00.000Z');
  });

  it('asks on both sides of the antimeridian', async () => {
    const asked: { first: string; days: number; west: number }[] = [];
    const { data } = await run(
      fireAlerts,
      { lat: -17, lon: 179.9, radiusKm: 50 },
      sky([fire(-17, -179.9, '2026-11-21T01:00:00.000Z')], asked),
    );
    assert.deepEqual(
      asked.map(({ west }) => Math.round(west)),
      [179, -180],
    );
    // The same fire comes with both boxes of the fake; each is 21.3 km away.
    assert.equal(data.fires[0].distanceKm, 21.267);
  });

  it('tells of no fire, of the whole Earth, and of what is not listed', async () => {
    const none = await run(fireAlerts, { lat: 0, lon: -140 }, sky([]));
    assert.deepEqual([none.data.count, none.data.dataDate], [0, null]);
    assert.ok(none.notes.some((note) => note.startsWith('No fire was detected')));
    const many = await run(
      fireAlerts,
      { limit: 1 },
      sky([
        fire(1, 1, '2026-11-21T01:00:00.000Z', 2),
        fire(2, 2, '2026-11-21T01:00:00.000Z', 9),
        fire(3, 3, '2026-11-21T01:00:00.000Z', null),
      ]),
    );
    assert.deepEqual(
      [many.data.searched, many.data.count, many.data.fires[0].frp, many.data.fires[0].distanceKm],
      ['whole Earth', 3, 9, null],
    );
    assert.ok(many.notes.some((note) => note.startsWith('2 more')));
  });

  it('has the ring at a fire of the day that the picture is of', async () => {
    const fakes = sky([
      fire(10.5, 20, '2026-11-20T12:00:00.000Z', 90),
      fire(10.2, 20.5, '2026-11-21T01:00:00.000Z', 5),
      fire(10.3, 20.5, '2026-11-21T01:00:00.000Z', 3),
    ]);
    const pictures = { linkTo: () => ({ url: 'https://shop.test/picture', expiresAtMs: NOW_MS }) };
    for (const [place, marker] of [
      [{}, { lat: 10.2, lon: 20.5 }],
      [
        { lat: 10.9, lon: 20.1 },
        { lat: 10.9, lon: 20.1 },
      ],
      [{ lat: 15, lon: 20.1 }, null],
    ] as const) {
      const input = fireAlerts.input.parse({ bbox: [19, 10, 21, 11], days: 2, ...place });
      const { fields } = await fireAlerts.run(input, { ...runContext(fakes), pictures });
      const { fires, image } = fireAlerts.output.parse(fields).data as {
        fires: unknown[];
        image: { observedAt: string; marker: unknown } | null;
      };
      assert.deepEqual([fires.length, image?.observedAt, image?.marker], [3, '2026-11-21', marker]);
    }
  });

  it('refuses what cannot be meant', async () => {
    await assert.rejects(run(fireAlerts, { days: 2 }, sky([])), failsWith(400, 'INVALID_REQUEST', 'days'));
    await assert.rejects(run(fireAlerts, { lat: 2 }, sky([])), failsWith(400, 'INVALID_REQUEST', 'lon'));
    await assert.rejects(
      run(fireAlerts, { bbox: '0,5,1,2' }, sky([])),
      failsWith(400, 'INVALID_REQUEST', 'bbox'),
    );
    for (const body of [
      { days: 11 },
      { days: 1.5 },
      { days: 'x' },
      { radiusKm: 0 },
      { satellite: 'GOES' },
      { lat: 91, lon: 0 },
    ]) {
      assert.equal(fireAlerts.input.safeParse(body).success, false, JSON.stringify(body));
    }
    assert.equal((fireAlerts.input.parse(fireAlerts.adapt?.({ hours: 25 })) as { days: number }).days, 2);
  });
});

describe('vegetation', () => {
  const DAYS = ['2026-09-14', '2026-09-30', '2026-10-16', '2026-11-01'];
  function field(
    values: Partial<Record<string, number[]>>,
    before: (number | null)[] = [4_000, 4_200],
  ): FakeUpstreams {
    let year = 0;
    return {
      modis: {
        pixels: async ({ band, first, last }) => {
          const pixel = (value: number) => [{ lat: 41.6, lon: -93.601, value }];
          if (Date.parse(last) - Date.parse(first) < 5 * 86_400_000) {
            const value = before[year++] ?? null;
            return reply('modis', {
              pixelMeters: 231.66,
              composites: value === null ? [] : [{ day: first, pixels: pixel(value) }],
            });
          }
          const column = values[band] ?? [];
          return reply('modis', {
            pixelMeters: 231.66,
            composites: column.map((value, at) => ({ day: DAYS[at] ?? '', pixels: pixel(value) })),
          });
        },
      },
    };
  }
  const { ndvi, evi, reliability } = VEGETATION_INDEX;

  it('scales the index, and holds it against the same days of two years', async () => {
    const { data } = await run(
      vegetation,
      { lat: 41.6, lon: -93.6 },
      field({
        [ndvi]: [5_000, 4_800, 4_500, 4_123],
        [evi]: [3_000, 2_900, 2_800, -3_000],
        [reliability]: [0, 0, 3, 1],
      }),
    );
    assert.deepEqual(
      [data.ndvi, data.evi, data.anomaly, data.healthStatus, data.trend, data.quality, data.coverClass],
      [0.4123, null, 0.0023, 'healthy', 'falling', 'marginal', 'moderate'],
    );
    assert.deepEqual(
      [data.compositeDate, data.compositeEnd, data.dataResolutionM],
      ['2026-11-01', '2026-11-16', 231.7],
    );
    assert.equal(data.distanceKm, 0.083);
    assert.equal(data.series[2].quality, 'cloudy');
  });

  it('takes the successor where Terra has ended, and names it', async () => {
    const asked: string[] = [];
    const ended: FakeUpstreams = {
      modis: {
        pixels: async ({ product, band, first, last }) => {
          asked.push(`${product} ${band}`);
          const day =
            product === 'MOD13Q1'
              ? '2026-01-01'
              : first > '2026-10-01' || first < '2026-01-01'
                ? first
                : '2026-10-24';
          const value = band.endsWith('reliability') ? 3 : product === 'MOD13Q1' ? 1_000 : 5_000;
          return reply('modis', {
            pixelMeters: 463.3,
            composites: day > last ? [] : [{ day, pixels: [{ lat: 41.6, lon: -93.6, value }] }],
          });
        },
      },
    };
    const { data, notes } = await run(vegetation, { lat: 41.6, lon: -93.6 }, ended);
    assert.deepEqual(
      [
        data.product,
        data.ndvi,
        data.quality,
        data.compositeDate,
        data.dataResolutionM,
        data.image,
        data.anomaly,
      ],
      ['VNP13A1', 0.5, 'marginal', '2026-10-24', 463.3, null, 0],
    );
    assert.match(
      notes.join(' '),
      /MOD13Q1 \(Terra\) has no composite for this day: VIIRS vegetation index VNP13A1/,
    );
    // The years before are of the same product.
    assert.deepEqual(asked.slice(6), ['VNP13A1 500_m_16_days_NDVI', 'VNP13A1 500_m_16_days_NDVI']);
    // A day before the successor's record is not asked of it.
    asked.length = 0;
    await assert.rejects(
      run(vegetation, { lat: 1, lon: 1, date: '2011-06-01' }, ended),
      failsWith(422, 'NOT_PUBLISHED', 'date'),
    );
    assert(asked.every((one) => one.startsWith('MOD13Q1')));
  });

  it('judges no health without years to compare, nor on bare ground', async () => {
    const columns = { [ndvi]: [1_500], [evi]: [1_000], [reliability]: [0] };
    const bare = await run(vegetation, { lat: 1, lon: 1 }, field(columns));
    assert.deepEqual([bare.data.healthStatus, bare.data.coverClass, bare.data.trend], [null, 'bare', null]);
    const alone = await run(vegetation, { lat: 1, lon: 1 }, field(columns, [4_000, null]));
    assert.deepEqual([alone.data.anomaly, alone.data.healthStatus], [null, null]);
  });

  it('tells sea from what is not published, and both from a day that cannot be', async () => {
    const sea = field({ [ndvi]: [-3_000], [evi]: [-3_000], [reliability]: [-1] });
    await assert.rejects(run(vegetation, { lat: 0, lon: 0 }, sea), failsWith(422, 'NOT_LAND', 'lat'));
    const noTile: FakeUpstreams = { modis: { pixels: async () => reply('modis', null) } };
    await assert.rejects(run(vegetation, { lat: 0, lon: -140 }, noTile), failsWith(422, 'NOT_LAND', 'lat'));
    await assert.rejects(
      run(vegetation, { lat: 1, lon: 1 }, field({})),
      failsWith(422, 'NOT_PUBLISHED', 'date'),
    );
    // The newest composite ends before the day that was asked for.
    const old = field({ [ndvi]: [5_000], [evi]: [3_000], [reliability]: [0] });
    await assert.rejects(
      run(vegetation, { lat: 1, lon: 1, date: '2026-09-30' }, old),
      failsWith(422, 'NOT_PUBLISHED', 'date'),
    );
    await assert.rejects(
      run(vegetation, { lat: 1, lon: 1, date: '2026-11-22' }, old),
      failsWith(400, 'INVALID_REQUEST', 'date'),
    );
    await assert.rejects(
      run(vegetation, { lat: 1, lon: 1, date: '2000-02-17' }, old),
      failsWith(422, 'BEFORE_RECORD', 'date'),
    );
  });
});

describe('land-use', () => {
  const map = (pixels: [km: number, value: number][], day = '2024-01-01'): FakeUpstreams => ({
    modis: {
      pixels: async () =>
        reply('modis', {
          pixelMeters: 463.3,
          composites: [{ day, pixels: pixels.map(([km, value]) => ({ lat: km / 111.195, lon: 0, value })) }],
        }),
    },
  });

  it('counts the classified pixels within the radius', async () => {
    const { data } = await run(
      landUse,
      { lat: 0, lon: 0, radiusKm: 1 },
      map([
        [0.1, 255],
        [0.4, 12],
        [0.5, 12],
        [0.9, 13],
        [1.2, 17],
      ]),
    );
    assert.deepEqual(data.classes, { cropland: 66.67, 'urban and built-up': 33.33 });
    assert.deepEqual(
      [data.dominantType, data.typeAtPoint, data.pixels, data.unclassifiedPixels, data.year, data.areaKm2],
      ['cropland', null, 3, 1, 2024, 0.64],
    );
  });

  it('asks for one map alone, and names it', async () => {
    const asked: string[] = [];
    const { data } = await run(
      landUse,
      { lat: 0, lon: 0 },
      {
        modis: {
          pixels: async ({ product }) => {
            asked.push(product);
            return reply('modis', {
              pixelMeters: 463.3,
              composites: [{ day: '2024-01-01', pixels: [{ value: 12, lat: 0, lon: 0 }] }],
            });
          },
        },
      },
    );
    assert.deepEqual([asked, data.product], [['MCD12Q1'], 'MCD12Q1']);
    const said = JSON.stringify(z.toJSONSchema(landUse.output, { io: 'output' }));
    assert.match(said, /MCD12Q1, made from MODIS/);
    assert.doesNotMatch(said, /VIIRS/, 'of what the source has besides, nothing is said');
  });

  it('has no map of the open sea, of other years and of nothing', async () => {
    const none: FakeUpstreams = { modis: { pixels: async () => reply('modis', null) } };
    const empty: FakeUpstreams = {
      modis: { pixels: async () => reply('modis', { pixelMeters: 463.3, composites: [] }) },
    };
    await assert.rejects(run(landUse, { lat: 0, lon: 0 }, none), failsWith(422, 'NOT_LAND', 'lat'));
    await assert.rejects(
      run(landUse, { lat: 0, lon: 0, year: 2026 }, empty),
      failsWith(422, 'NOT_PUBLISHED', 'year'),
    );
    await assert.rejects(
      run(landUse, { lat: 0, lon: 0, year: 2000 }, empty),
      failsWith(422, 'BEFORE_RECORD', 'year'),
    );
    await assert.rejects(
      run(landUse, { lat: 0, lon: 0, year: 2027 }, empty),
      failsWith(400, 'INVALID_REQUEST', 'year'),
    );
    await assert.rejects(
      run(landUse, { lat: 0, lon: 0 }, map([[0.1, 255]])),
      failsWith(422, 'NO_DATA', 'lat'),
    );
  });
});

describe('flood-detection', () => {
  /** Twenty years whose greatest days are 100 to 195, all else 10; today and the days ahead as given. */
  function river(recent: (number | null)[], scale = 1): FakeUpstreams {
    return {
      openmeteoflood: {
        discharge: async ({ first, last, settled }) => {
          const days: { day: string; m3s: number | null }[] = [];
          for (let at = Date.parse(first); at <= Date.parse(last); at += 86_400_000) {
            const day = new Date(at).toISOString().slice(0, 10);
            const record = day.endsWith('-05-01') ? 100 + 5 * (Number(day.slice(0, 4)) - 2006) : 10;
            days.push({
              day,
              m3s:
                settled && days.length >= 0 && last.endsWith('-12-31')
                  ? record * scale
                  : (recent[days.length] ?? null),
            });
          }
          return reply('openmeteoflood', { lat: 48.225, lon: 15.625, days });
        },
      },
    };
  }
  const point = { lat: 48.2, lon: 15.6 };

  it('holds the peak ahead against the floods of the record', async () => {
    // Maxima 100, 105 … 195: mean 147.5, second L-moment 17.5, scale 25.247, location 132.927.
    for (const [peak, risk] of [
      [142.1, 'low'],
      [142.3, 'moderate'],
      [171, 'high'],
      [208, 'severe'],
    ] as const) {
      const { data } = await run(floods, point, river([20, 15, peak, 12]));
      assert.equal(data.floodRisk, risk, `${peak} of ${JSON.stringify(data.returnLevelsM3s)}`);
      assert.deepEqual(data.peak, { date: '2026-11-23', riverDischargeM3s: peak });
      assert.deepEqual([data.riverDischargeM3s, data.percentile, data.recordYears], [20, 100, 20]);
      assert.equal(data.forecast.length, 10);
    }
    const { data } = await run(floods, point, river([20]));
    assert.ok(Math.abs(data.returnLevelsM3s.years20 - (132.927 + 25.247 * 2.970195)) < 0.01);
    assert.equal(data.distanceKm, 3.341);
  });

  it('is of a past day alone when one is asked for', async () => {
    const { data } = await run(floods, { ...point, date: '2026-11-10' }, river([150]));
    assert.deepEqual([data.floodRisk, data.observedAt, data.forecast], ['moderate', '2026-11-10', []]);
  });

  it('has nothing to say at sea, in a desert, of a gap and of days that cannot be', async () => {
    const sea: FakeUpstreams = {
      openmeteoflood: {
        discharge: async ({ first }) =>
          reply('openmeteoflood', { lat: 0, lon: 0, days: [{ day: first, m3s: null }] }),
      },
    };
    await assert.rejects(run(floods, point, sea), failsWith(422, 'NO_RIVER', 'lat'));
    await assert.rejects(run(floods, point, river([0], 0)), failsWith(422, 'NO_RIVER', 'lat'));
    await assert.rejects(run(floods, point, river([null, 5])), failsWith(422, 'NOT_PUBLISHED', 'date'));
    await assert.rejects(
      run(floods, { ...point, date: '2026-11-22' }, sea),
      failsWith(400, 'INVALID_REQUEST', 'date'),
    );
    await assert.rejects(
      run(floods, { ...point, date: '1983-12-31' }, sea),
      failsWith(422, 'BEFORE_RECORD', 'date'),
    );
  });
});

describe('air-quality', () => {
  const values = {
    us_aqi: 151,
    european_aqi: 90,
    pm10: 80,
    pm2_5: 56,
    carbon_monoxide: 400,
    nitrogen_dioxide: 30,
    sulphur_dioxide: null,
    ozone: 20,
    aerosol_optical_depth: 0.4,
  };
  const sky = (changed: Partial<Record<keyof typeof values, number | null>> = {}): FakeUpstreams => ({
    openmeteoair: {
      current: async () =>
        reply('openmeteoair', {
          lat: 28.6,
          lon: 77.2,
          at: new Date(NOW_MS).toISOString(),
          values: { ...values, ...changed },
        }),
    },
  });

  it('names what it has, what it lacks and what was asked for', async () => {
    const { data, notes } = await run(airQuality, { lat: 28.61, lon: 77.21, pollutant: 'pm2_5' }, sky());
    assert.deepEqual(
      [data.pm25, data.so2, data.category, data.selected],
      [56, null, 'unhealthy', { pollutant: 'PM2.5', value: 56, unit: 'µg/m³' }],
    );
    assert.ok(notes[0]?.includes('SO2'));
    assert.equal(data.distanceKm, 1.48);
  });

  it('has no answer where the model has nothing at all', async () => {
    const nothing = Object.fromEntries(Object.keys(values).map((name) => [name, null]));
    await assert.rejects(run(airQuality, { lat: 0, lon: 0 }, sky(nothing)), failsWith(422, 'NO_DATA', 'lat'));
  });
});
