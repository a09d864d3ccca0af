import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import type { SeaSurfaceCell } from '../../upstreams/adapters/erddap.ts';
import type { Picture } from '../../upstreams/picture.ts';
import { type FakeUpstreams, reply, runContext } from '../run-context.fixture.ts';
import sst from './earthdata-sst.ts';
import imagery from './weather-imagery.ts';

const failsWith = (status: number, code: string, field?: string) => (error: unknown) => {
  assert.ok(error instanceof ServiceFailure, String(error));
  assert.deepEqual([error.status, error.code, error.field], [status, code, field]);
  return true;
};

describe('earthdata-sst', () => {
  const cell: SeaSurfaceCell = { time: '2026-11-18T09:00:00Z', lat: 36.8, lon: -122, celsius: 13.27 };
  const days: (string | null)[] = [];
  const run = (body: Record<string, unknown>, value: SeaSurfaceCell | null) =>
    sst.run(
      sst.input.parse(body),
      runContext({
        erddap: {
          seaSurfaceTemperature: async ({ day }) => {
            days.push(day);
            return reply('erddap', value);
          },
        },
      }),
    );

  it('answers Celsius, Kelvin and the day of the value', async () => {
    const { fields, notes } = await run({ lat: '36.8', lon: 238 }, cell);
    const { data } = sst.output.parse(fields) as { data: Record<string, unknown> };
    assert.deepEqual(
      [data.temperatureCelsius, data.temperatureKelvin, data.analysisDate],
      [13.27, 286.42, '2026-11-18T09:00:00Z'],
    );
    assert.ok(notes[0]?.includes('2026-11-18'));
    assert.equal(days.at(-1), null);
  });

  it('honours the date, and does not pass another day off as it', async () => {
    await run({ lat: 36.8, lon: -122, date: '2026-11-18' }, cell);
    assert.equal(days.at(-1), '2026-11-18');
    await assert.rejects(
      run({ lat: 36.8, lon: -122, date: '2026-11-19' }, cell),
      failsWith(422, 'NO_ANALYSIS', 'date'),
    );
    const asked = days.length;
    await assert.rejects(
      run({ lat: 36.8, lon: -122, date: '2026-11-22' }, cell),
      failsWith(400, 'INVALID_REQUEST', 'date'),
    );
    assert.equal(days.length, asked);
  });

  it('has no answer on land and outside the grid', async () => {
    await assert.rejects(
      run({ lat: 48.85, lon: 2.35 }, { ...cell, celsius: null }),
      failsWith(422, 'NOT_SEA', 'lat'),
    );
    await assert.rejects(
      run({ lat: 0, lon: 0, date: '1999-01-01' }, null),
      failsWith(422, 'OUT_OF_RANGE', 'date'),
    );
  });
});

describe('weather-imagery', () => {
  const shown: Picture = {
    format: 'png',
    bytes: 4_321,
    sha256: 'ab'.repeat(32),
    widthPx: 512,
    heightPx: 512,
    singleColor: false,
  };

  interface Told {
    layer: string;
    times: string[];
    box: readonly number[];
  }

  function sky(
    hasTime: (time: string) => boolean,
    picture: Picture | null = shown,
  ): { fakes: FakeUpstreams; told: Told } {
    const told: Told = { layer: '', times: [], box: [] };
    return {
      told,
      fakes: {
        gibs: {
          tile: async (layer, time, format) => {
            told.layer = layer.id;
            told.times.push(time);
            return reply('gibs', hasTime(time) && format === layer.tileFormats.at(-1) ? shown : null);
          },
          map: async (_layer, _time, box, { widthPx, heightPx }) => {
            told.box = box;
            const made = reply('gibs', picture);
            return {
              ...made,
              source: { ...made.source, url: `https://gibs.test/wms?WIDTH=${widthPx}&HEIGHT=${heightPx}` },
            };
          },
        },
      },
    };
  }

  async function run(body: Record<string, unknown>, fakes: FakeUpstreams) {
    const made = await imagery.run(imagery.input.parse(imagery.adapt?.(body) ?? body), runContext(fakes));
    const { data } = imagery.output.parse(made.fields) as { data: Record<string, unknown> };
    return { data, notes: made.notes };
  }

  it('takes the newest time that is really there, around the point', async () => {
    const { fakes, told } = sky((time) => time === '2026-11-21T04:30:00Z');
    const { data } = await run({ lat: 29, lon: -90, layer: 'GOES_East_ABI_GeoColor' }, fakes);
    assert.equal(told.layer, 'GOES-East_ABI_GeoColor');
    assert.deepEqual(told.times.slice(0, 3), [
      '2026-11-21T04:50:00Z',
      '2026-11-21T04:50:00Z',
      '2026-11-21T04:40:00Z',
    ]);
    assert.equal(data.date, '2026-11-21T04:30:00Z');
    assert.deepEqual(data.bbox, [-95, 24, -85, 34]);
    assert.equal(data.bboxFrom, 'around lat and lon');
    assert.deepEqual([data.imageBytes, data.sha256], [4_321, 'ab'.repeat(32)]);
    assert.equal(data.thumbnailUrl, 'https://gibs.test/wms?WIDTH=128&HEIGHT=128');
  });

  it('reads a box as text, as a list and as four numbers, and keeps its shape', async () => {
    for (const body of [
      { bbox: '-20, 30, 0, 40' },
      { bbox: [-20, 30, 0, 40] },
      { west: -20, south: '30', east: 0, north: 40 },
    ]) {
      const { fakes, told } = sky(() => true);
      const { data } = await run(body, fakes);
      assert.deepEqual(told.box, [-20, 30, 0, 40]);
      assert.deepEqual([data.width, data.height, data.date], [512, 256, '2026-11-20']);
    }
  });

  it('says that it shows the whole layer when no place was given', async () => {
    const { fakes } = sky(() => true);
    const { data, notes } = await run({}, fakes);
    assert.deepEqual(data.bbox, [-180, -90, 180, 90]);
    assert.equal(data.bboxFrom, 'whole layer');
    assert.ok(notes.some((note) => note.includes('Neither lat and lon nor bbox')));
  });

  it('keeps the point in the box at the edges of the map', async () => {
    const { fakes, told } = sky(() => true);
    await run({ lat: -89, lon: 179 }, fakes);
    assert.deepEqual(told.box, [170, -90, 180, -80]);
    await run({ lat: 0.1, lon: 9.7 }, fakes);
    assert.deepEqual(told.box, [4.7, -4.9, 14.7, 5.1]);
  });

  it('has no answer for what is not there, not seen or empty', async () => {
    const nothing = sky(() => false).fakes;
    const blank = sky(() => true, { ...shown, singleColor: true }).fakes;
    await assert.rejects(run({ date: '1970-01-01' }, nothing), failsWith(422, 'NO_IMAGERY', 'date'));
    await assert.rejects(
      run({ lat: 35.7, lon: 139.7, layer: 'GOES-East_ABI_GeoColor' }, nothing),
      failsWith(422, 'OUT_OF_COVERAGE', 'lon'),
    );
    await assert.rejects(run({ lat: 10, lon: 10 }, blank), failsWith(422, 'EMPTY_IMAGE'));
    // No rain is an answer.
    const { notes } = await run({ lat: 10, lon: 10, layer: 'IMERG_Precipitation_Rate_30min' }, blank);
    assert.ok(notes.some((note) => note.includes('one color')));
  });

  it('refuses what cannot be meant', async () => {
    const { fakes } = sky(() => true);
    await assert.rejects(run({ lat: 10 }, fakes), failsWith(400, 'INVALID_REQUEST', 'lon'));
    await assert.rejects(
      run({ bbox: [170, -10, -170, 10] }, fakes),
      failsWith(400, 'INVALID_REQUEST', 'bbox'),
    );
    await assert.rejects(run({ date: '2026-11-22' }, fakes), failsWith(400, 'INVALID_REQUEST', 'date'));
    await assert.rejects(run({ layer: 'Moon' }, fakes), failsWith(404, 'NOT_FOUND', 'layer'));
    assert.equal(imagery.input.safeParse({ bbox: '1,2,,4' }).success, false);
  });
});
