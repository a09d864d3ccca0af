import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { nws } from './nws.ts';

const JSON_TYPE = { 'content-type': 'application/geo+json' };

function observed(change: (properties: Record<string, unknown>) => void = () => {}): RawReply {
  const properties: Record<string, unknown> = {
    timestamp: '2026-01-10T12:52:00+00:00',
    textDescription: 'Mostly Cloudy',
    elevation: { unitCode: 'wmoUnit:m', value: 307 },
    temperature: { unitCode: 'wmoUnit:degC', value: 12.3, qualityControl: 'V' },
    dewpoint: { unitCode: 'wmoUnit:degC', value: null, qualityControl: 'Z' },
    windSpeed: { unitCode: 'wmoUnit:km_h-1', value: 18.4, qualityControl: 'V' },
    windDirection: { unitCode: 'wmoUnit:degree_(angle)', value: 270, qualityControl: 'V' },
    barometricPressure: { unitCode: 'wmoUnit:Pa', value: 101_320, qualityControl: 'V' },
    relativeHumidity: { unitCode: 'wmoUnit:percent', value: 61.7, qualityControl: 'V' },
  };
  change(properties);
  const geometry = { type: 'Point', coordinates: [-84.43, 33.64] };
  return { headers: JSON_TYPE, body: JSON.stringify({ type: 'Feature', geometry, properties }) };
}

it('reads an observation with longitude before latitude, and what was not measured as null', () =>
  againstLocalServer(
    nws,
    {},
    () => observed(),
    async (api, asked) => {
      const { value, source } = await api.latest('KATL');
      assert(value !== null);
      assert.deepEqual([value.lat, value.lon, value.elevationM], [33.64, -84.43, 307]);
      assert.deepEqual(value.temperatureC, { value: 12.3, quality: 'V' });
      assert.deepEqual(
        [value.dewpointC, value.windGustKmh, value.precipitationLastHourMm],
        [null, null, null],
      );
      assert.deepEqual([value.pressurePa?.value, source.asOf], [101_320, '2026-01-10T12:52:00.000Z']);
      assert.match(String(asked[0]?.url), /\/stations\/KATL\/observations\/latest$/);
    },
  ));

it('refuses a value in any other unit than the expected one', () =>
  againstLocalServer(
    nws,
    {},
    () =>
      observed((properties) => {
        properties.temperature = { unitCode: 'wmoUnit:degF', value: 54.1, qualityControl: 'V' };
      }),
    async (api) => {
      await assert.rejects(api.latest('KATL'), UpstreamUnavailable);
    },
  ));

it('asks for a point with at most four decimals, and reads a 404 as a place outside the country', () =>
  againstLocalServer(
    nws,
    {},
    () => ({
      status: 404,
      headers: { 'content-type': 'application/problem+json' },
      body: '{"title":"Not Found"}',
    }),
    async (api, asked) => {
      const { value } = await api.stationsNear({ lat: 52.123456, lon: 4.9 });
      assert.equal(value, null);
      assert.match(String(asked[0]?.url), /\/points\/52\.1235,4\.9$/);
    },
  ));

it('asks the cell of the grid that holds a point for its stations', () =>
  againstLocalServer(
    nws,
    {},
    ({ url }) => {
      const body = url.pathname.endsWith('/points/33.64,-84.43')
        ? { type: 'Feature', properties: { gridId: 'FFC', gridX: 49, gridY: 80 } }
        : {
            type: 'FeatureCollection',
            features: [
              {
                geometry: { type: 'Point', coordinates: [-84.4418, 33.6301] },
                properties: { stationIdentifier: 'KATL', name: 'Atlanta' },
              },
            ],
          };
      return { headers: JSON_TYPE, body: JSON.stringify(body) };
    },
    async (api, asked) => {
      const { value } = await api.stationsNear({ lat: 33.64, lon: -84.43 });
      assert.deepEqual(value, [{ id: 'KATL', name: 'Atlanta', lat: 33.6301, lon: -84.4418 }]);
      assert.deepEqual(
        asked.map(({ url }) => url.pathname),
        ['/base/points/33.64,-84.43', '/base/gridpoints/FFC/49,80/stations'],
      );
    },
  ));

it('asks nothing further of a point whose cell it cannot read', () =>
  againstLocalServer(
    nws,
    {},
    () => ({
      headers: JSON_TYPE,
      body: JSON.stringify({ properties: { gridId: '../stations', gridX: 49, gridY: 80 } }),
    }),
    async (api, asked) => {
      await assert.rejects(api.stationsNear({ lat: 33.64, lon: -84.43 }), UpstreamUnavailable);
      assert.equal(asked.length, 1);
    },
  ));
