import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../words/failure.ts';
import { erddap } from './erddap.ts';
import { againstLocalServer, type RawReply } from './local-server.fixture.ts';

function table(rows: unknown[][], unit = 'degree_C'): RawReply {
  return {
    body: JSON.stringify({
      table: {
        columnNames: ['time', 'latitude', 'longitude', 'analysed_sst'],
        columnTypes: ['String', 'double', 'double', 'double'],
        columnUnits: ['UTC', 'degrees_north', 'degrees_east', unit],
        rows,
      },
    }),
  };
}
const NOTHING: RawReply = {
  status: 404,
  headers: { 'content-type': 'text/plain' },
  body: 'Error {\n    code=404;\n    message="Not Found: Your query produced no matching results. (axis#0=time)";\n}\n',
};
const info: RawReply = {
  body: JSON.stringify({ table: { columnNames: ['Row Type'], rows: [['dimension']] } }),
};

it('asks with encoded brackets for the analysis of a day, and reads the cell', () =>
  againstLocalServer(
    erddap,
    {},
    () => table([['2026-01-10T09:00:00Z', 36.8, -122.0, 13.27]]),
    async (api, asked) => {
      const { value, source } = await api.seaSurfaceTemperature({ lat: 36.8, lon: -122, day: '2026-01-10' });
      assert.deepEqual(value, { time: '2026-01-10T09:00:00Z', lat: 36.8, lon: -122, celsius: 13.27 });
      assert.equal(source.asOf, '2026-01-10T09:00:00Z');
      assert.equal(
        asked[0]?.url.search,
        '?analysed_sst%5B%282026-01-10T09%3A00%3A00Z%29%5D%5B%2836.8%29%5D%5B%28-122%29%5D',
      );
    },
  ));

it('reads a masked cell as null, and asks for the antimeridian where the axis has it', () =>
  againstLocalServer(
    erddap,
    {},
    () => table([['2026-01-10T09:00:00Z', 0, 180, null]]),
    async (api, asked) => {
      const { value } = await api.seaSurfaceTemperature({ lat: 0, lon: -180, day: null });
      assert.equal(value?.celsius, null);
      assert.equal(asked[0]?.url.search, '?analysed_sst%5B%28last%29%5D%5B%280%29%5D%5B%28180%29%5D');
    },
  ));

it('tells a point outside the axes from a dataset that is gone', async () => {
  const asked = { lat: 89.999, lon: 0, day: '1999-01-01' };
  await againstLocalServer(
    erddap,
    {},
    ({ url }) => (url.pathname.includes('/info/') ? info : NOTHING),
    async (api) => assert.equal((await api.seaSurfaceTemperature(asked)).value, null),
  );
  await againstLocalServer(
    erddap,
    {},
    () => NOTHING,
    async (api) => {
      await assert.rejects(api.seaSurfaceTemperature(asked), UpstreamUnavailable);
    },
  );
});

it('refuses a unit that it does not know, and a page of HTML', async () => {
  for (const body of [table([['2026-01-10T09:00:00Z', 0, 0, 28]], 'kelvin'), { body: '<html></html>' }]) {
    await againstLocalServer(
      erddap,
      {},
      () => body,
      async (api) => {
        await assert.rejects(api.seaSurfaceTemperature({ lat: 0, lon: 0, day: null }), UpstreamUnavailable);
      },
    );
  }
});
