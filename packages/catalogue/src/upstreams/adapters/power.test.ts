import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { power } from './power.ts';

const ASKED = {
  parameters: ['GWETTOP', 'PRECTOTCORR'],
  lat: 41.6,
  lon: -93.6,
  first: '2026-01-09',
  last: '2026-01-11',
  settled: false,
} as const;

function recorded(change: (body: Recorded) => void = () => {}): RawReply {
  const body = {
    type: 'Feature',
    geometry: { type: 'Point', coordinates: [-93.6, 41.6, 283.4] },
    properties: {
      parameter: {
        GWETTOP: { '20260109': 0.61, '20260110': 0.6, '20260111': -999 },
        PRECTOTCORR: { '20260109': 3.42, '20260110': 0, '20260111': -999 },
      } as Record<string, Record<string, number>>,
    },
    header: {
      title: 'NASA/POWER Source Native Resolution Daily Data',
      api: { version: 'v2.8.0', name: 'POWER Daily API' },
      sources: ['MERRA2'],
      fill_value: -999,
      time_standard: 'UTC',
      start: '20260109',
      end: '20260111',
    },
    messages: [],
    parameters: {
      GWETTOP: { units: '1', longname: 'Surface Soil Wetness' },
      PRECTOTCORR: { units: 'mm/day', longname: 'Precipitation Corrected' },
    },
    times: { data: 1.2, process: 0.02 },
  };
  change(body);
  return { body: JSON.stringify(body) };
}
type Recorded = {
  header: Record<string, unknown>;
  properties: { parameter: Record<string, Record<string, number>> };
};

it('asks for days in UTC, and reads fill values as null', () =>
  againstLocalServer(
    power,
    {},
    () => recorded(),
    async (api, asked) => {
      const { value } = await api.daily(ASKED);
      assert.deepEqual(value, {
        days: [
          { day: '2026-01-09', values: [0.61, 3.42] },
          { day: '2026-01-10', values: [0.6, 0] },
          { day: '2026-01-11', values: [null, null] },
        ],
        madeFrom: ['MERRA2'],
        units: { GWETTOP: '1', PRECTOTCORR: 'mm/day' },
      });
      assert.deepEqual(Object.fromEntries(asked[0]?.url.searchParams ?? []), {
        parameters: 'GWETTOP,PRECTOTCORR',
        community: 'AG',
        longitude: '-93.6',
        latitude: '41.6',
        start: '20260109',
        end: '20260111',
        format: 'JSON',
        'time-standard': 'UTC',
      });
    },
  ));

it('recognizes fill values by their size, whatever the header says', () =>
  againstLocalServer(
    power,
    {},
    () =>
      recorded((body) => {
        body.header.fill_value = -99;
        body.properties.parameter.GWETTOP = { '20260109': -99, '20260110': -9999, '20260111': 0.5 };
      }),
    async (api) => {
      const { value } = await api.daily(ASKED);
      assert.deepEqual(
        value.days.map(({ values: [top] }) => top),
        [null, null, 0.5],
      );
    },
  ));

it('refuses days of local time, a missing parameter, an error with status 200, HTML and half a reply', async () => {
  const wrong: RawReply[] = [
    recorded((body) => {
      body.header.time_standard = 'LST';
    }),
    recorded((body) => {
      delete body.properties.parameter.PRECTOTCORR;
    }),
    { body: JSON.stringify({ header: 'failed', messages: ['One of your parameters is incorrect'] }) },
    { status: 422, body: JSON.stringify({ header: 'failed', messages: ['Please provide a valid point'] }) },
    { headers: { 'content-type': 'text/html' }, body: '<html>Maintenance</html>' },
    { body: recorded().body.slice(0, 200) },
  ];
  for (const [at, reply] of wrong.entries()) {
    await againstLocalServer(
      power,
      {},
      () => reply,
      async (api) => {
        await assert.rejects(api.daily(ASKED), UpstreamUnavailable, String(at));
      },
    );
  }
});
