import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { firms } from './firms.ts';

const KEY = 'a-map-key-of-an-operator';
const ASKED = {
  satellite: 'VIIRS_NOAA20_NRT',
  box: { west: -123.5581234, south: 36.871, east: -121.282, north: 38.669 },
  first: '2026-01-08',
  days: 5,
} as const;
const VIIRS =
  'latitude,longitude,bright_ti4,scan,track,acq_date,acq_time,satellite,instrument,confidence,version,bright_ti5,frp,daynight';
const MODIS =
  'latitude,longitude,brightness,scan,track,acq_date,acq_time,satellite,instrument,confidence,version,bright_t31,frp,daynight';
const csv = (...lines: string[]): RawReply => ({
  headers: { 'content-type': 'text/csv' },
  body: `${lines.join('\n')}\n`,
});
const ask = (reply: RawReply, config: { apiKey?: string } = { apiKey: KEY }) =>
  againstLocalServer(
    firms,
    config,
    () => reply,
    (api) => api.fires(ASKED),
  );

it('sends the key in the path, and shows it nowhere', () =>
  againstLocalServer(
    firms,
    { apiKey: KEY },
    () => csv(VIIRS, '38.10000,-121.90000,331.4,0.39,0.44,2026-01-10,659,N20,VIIRS,n,2.0NRT,289.9,4.12,N'),
    async (api, asked) => {
      const { value, source } = await api.fires(ASKED);
      assert.equal(
        asked[0]?.url.pathname,
        `/base/api/area/csv/${KEY}/VIIRS_NOAA20_NRT/-123.5581,36.871,-121.282,38.669/5/2026-01-08`,
      );
      assert.ok(!JSON.stringify(source).includes(KEY));
      assert.ok(source.url.includes('/api/area/csv/MAP_KEY/'));
      assert.deepEqual(value, [
        {
          lat: 38.1,
          lon: -121.9,
          brightnessKelvin: 331.4,
          frpMw: 4.12,
          confidence: 'nominal',
          confidenceAsGiven: 'n',
          satellite: 'N20',
          instrument: 'VIIRS',
          at: '2026-01-10T06:59:00.000Z',
          daynight: 'night',
          scanKm: 0.39,
          trackKm: 0.44,
        },
      ]);
    },
  ));

it('reads MODIS rows: times just after midnight, confidence in percent, and a missing power', async () => {
  const { value } = await ask(
    csv(MODIS, '1.5,2.5,310.2,1.1,1,2026-01-10,7,Terra,MODIS,82,6.1NRT,290.1,-9999,D'),
  );
  assert.deepEqual(
    [value[0]?.at, value[0]?.confidence, value[0]?.frpMw, value[0]?.brightnessKelvin],
    ['2026-01-10T00:07:00.000Z', 'high', null, 310.2],
  );
  assert.deepEqual((await ask(csv(VIIRS))).value, []);
});

it('does not take a line of text, a page or half a row for a list of fires', async () => {
  for (const wrong of [
    { body: 'Invalid MAP_KEY.' },
    { status: 400, body: 'Invalid MAP_KEY.' },
    { body: '' },
    { body: '<html><body>Service unavailable</body></html>' },
    csv(VIIRS, '38.10000,-121.90000,331.4,0.39'),
    csv(VIIRS, '98.1,-121.9,331.4,0.39,0.44,2026-01-10,659,N20,VIIRS,n,2.0NRT,289.9,4.12,N'),
    csv(VIIRS, '38.1,-121.9,331.4,0.39,0.44,2026-01-10,2575,N20,VIIRS,n,2.0NRT,289.9,4.12,N'),
    csv(VIIRS, '38.1,-121.9,NaN,0.39,0.44,2026-01-10,659,N20,VIIRS,n,2.0NRT,289.9,4.12,N'),
  ]) {
    await assert.rejects(ask(wrong), UpstreamUnavailable, String(wrong.body));
  }
  await assert.rejects(ask(csv(VIIRS), {}), { reason: 'not_configured' });
});

it('reports a failure without showing the key', async () => {
  await assert.rejects(
    ask({ status: 500, body: KEY }),
    (error: Error) => !JSON.stringify({ ...error, m: error.message }).includes(KEY),
  );
});
