import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { openmeteoarchive } from './openmeteoarchive.ts';

const ASKED = { lat: 41.6, lon: -93.6, day: '2026-01-10' };

function recorded(value: unknown, unit = 'm³/m³'): RawReply {
  return {
    body: JSON.stringify({
      latitude: 41.55,
      longitude: -93.65,
      generationtime_ms: 0.05,
      utc_offset_seconds: 0,
      timezone: 'GMT',
      timezone_abbreviation: 'GMT',
      elevation: 269,
      daily_units: { time: 'iso8601', soil_moisture_0_to_7cm_mean: unit },
      daily: { time: ['2026-01-10'], soil_moisture_0_to_7cm_mean: [value] },
    }),
  };
}

it('reads the cell and its moisture, and shows the key to the source alone', () =>
  againstLocalServer(
    openmeteoarchive,
    { apiKey: 'a-key-of-a-customer' },
    () => recorded(0.287),
    async (api, asked) => {
      const { value, source } = await api.soilMoisture(ASKED);
      assert.deepEqual(value, { lat: 41.55, lon: -93.65, surfaceM3M3: 0.287 });
      assert.equal(asked[0]?.url.searchParams.get('apikey'), 'a-key-of-a-customer');
      assert.ok(!source.url.includes('a-key-of-a-customer'));
      assert.match(source.licence ?? '', /CC BY 4.0/);
    },
  ));

it('reads null at sea, and nothing that is not a fraction in the right unit', async () => {
  const ask = (reply: RawReply) =>
    againstLocalServer(
      openmeteoarchive,
      { apiKey: 'k' },
      () => reply,
      (api) => api.soilMoisture(ASKED),
    );
  assert.equal((await ask(recorded(null))).value.surfaceM3M3, null);
  for (const wrong of [
    recorded(28.7),
    recorded(-9999),
    recorded(0.3, 'percent'),
    { body: JSON.stringify({ error: true, reason: 'The supplied API key is invalid.' }) },
    { body: '<html></html>' },
  ]) {
    await assert.rejects(ask(wrong), UpstreamUnavailable);
  }
});

it('is not configured without a key', () =>
  againstLocalServer(
    openmeteoarchive,
    {},
    () => recorded(0.3),
    async (api, asked) => {
      await assert.rejects(api.soilMoisture(ASKED), { reason: 'not_configured' });
      assert.equal(asked.length, 0);
    },
  ));
