import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { openmeteoair } from './openmeteoair.ts';
import { openmeteoflood } from './openmeteoflood.ts';

const OPENED = { apiKey: 'a-key-of-a-customer' };
const ERRORS: readonly RawReply[] = [
  {
    body: JSON.stringify({
      error: true,
      reason: 'Daily API request limit exceeded. Please try again tomorrow.',
    }),
  },
  { status: 400, body: JSON.stringify({ error: true, reason: 'The supplied API key is invalid.' }) },
  { body: '<html></html>' },
  { body: '{"latitude":48.' },
];

describe('the air', () => {
  const units = {
    time: 'iso8601',
    interval: 'seconds',
    us_aqi: 'USAQI',
    european_aqi: 'EAQI',
    pm10: 'μg/m³',
    pm2_5: 'μg/m³',
    carbon_monoxide: 'μg/m³',
    nitrogen_dioxide: 'μg/m³',
    sulphur_dioxide: 'μg/m³',
    ozone: 'μg/m³',
    aerosol_optical_depth: '',
  };
  const values = {
    time: '2026-01-10T12:00',
    interval: 3_600,
    us_aqi: 42,
    european_aqi: 31,
    pm10: 14.2,
    pm2_5: 9.8,
    carbon_monoxide: 180,
    nitrogen_dioxide: 12.4,
    sulphur_dioxide: 1.1,
    ozone: 61,
    aerosol_optical_depth: null,
  };
  const recorded = (change: Record<string, unknown> = {}, body: Record<string, unknown> = {}): RawReply => ({
    body: JSON.stringify({
      latitude: 48.2,
      longitude: 11.4,
      utc_offset_seconds: 0,
      current_units: units,
      current: { ...values, ...change },
      ...body,
    }),
  });
  const ask = (reply: RawReply) =>
    againstLocalServer(
      openmeteoair,
      OPENED,
      () => reply,
      (api) => api.current({ lat: 48, lon: 11 }),
    );

  it('is read with its hour, nulls and all', async () => {
    const { value, source } = await ask(recorded());
    assert.deepEqual(
      [value.at, value.values.pm2_5, value.values.aerosol_optical_depth],
      ['2026-01-10T12:00:00.000Z', 9.8, null],
    );
    assert.ok(!source.url.includes(OPENED.apiKey));
  });

  it('is refused with a missing or negative value, another unit or another time zone', async () => {
    for (const wrong of [
      recorded({ ozone: undefined }),
      recorded({ ozone: -999 }),
      recorded({ ozone: '61' }),
      recorded({}, { current_units: { ...units, ozone: 'ppb' } }),
      recorded({}, { utc_offset_seconds: 3_600 }),
      ...ERRORS,
    ]) {
      await assert.rejects(ask(wrong), UpstreamUnavailable, JSON.stringify(wrong));
    }
  });
});

describe('a river', () => {
  const recorded = (
    days: unknown[],
    times: string[] = ['2026-01-10', '2026-01-11'],
    unit = 'm³/s',
  ): RawReply => ({
    body: JSON.stringify({
      latitude: 48.225,
      longitude: 15.625,
      daily_units: { time: 'iso8601', river_discharge: unit },
      daily: { time: times, river_discharge: days },
    }),
  });
  const ask = (reply: RawReply) =>
    againstLocalServer(
      openmeteoflood,
      OPENED,
      () => reply,
      (api, asked) =>
        api
          .discharge({ lat: 48.2, lon: 15.6, first: '2026-01-10', last: '2026-01-11', settled: false })
          .then((answer) => ({ ...answer, asked })),
    );

  it('is asked for by days, and read with its gaps', async () => {
    const { value, asked } = await ask(recorded([1_890.5, null]));
    assert.deepEqual(value.days, [
      { day: '2026-01-10', m3s: 1_890.5 },
      { day: '2026-01-11', m3s: null },
    ]);
    const query = Object.fromEntries(asked[0]?.url.searchParams ?? []);
    assert.deepEqual(
      [query.start_date, query.end_date, query.apikey],
      ['2026-01-10', '2026-01-11', OPENED.apiKey],
    );
  });

  it('is refused with a fill value, half of its days or another unit', async () => {
    for (const wrong of [
      recorded([-9_999, 1]),
      recorded([1]),
      recorded([1, 2], ['10.01.2026', '11.01.2026']),
      recorded([1, 2], undefined, 'ft³/s'),
      ...ERRORS,
    ]) {
      await assert.rejects(ask(wrong), UpstreamUnavailable, JSON.stringify(wrong));
    }
  });
});
