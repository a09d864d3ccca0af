import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { erddap } from './erddap.ts';

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

it('distinguishes a point outside the axes from a dataset that is gone', async () => {
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

/** The rows that describe a dataset's axes, in its own order. */
function axes(names: readonly string[], spacing: number): RawReply {
  return {
    body: JSON.stringify({
      table: {
        columnNames: ['Row Type', 'Variable Name', 'Attribute Name', 'Data Type', 'Value'],
        columnTypes: ['String', 'String', 'String', 'String', 'String'],
        rows: [
          ['attribute', 'NC_GLOBAL', 'cdm_data_type', 'String', 'Grid'],
          ...names.map((name) => [
            'dimension',
            name,
            '',
            'double',
            `nValues=10, evenlySpaced=true, averageSpacing=${name === 'latitude' ? spacing : 0.0375}`,
          ]),
        ],
      },
    }),
  };
}

function color(rows: unknown[][], unit = 'mg m^-3'): RawReply {
  return {
    body: JSON.stringify({
      table: {
        columnNames: ['time', 'latitude', 'longitude', 'chlor_a'],
        columnTypes: ['String', 'double', 'double', 'float'],
        columnUnits: ['UTC', 'degrees_north', 'degrees_east', unit],
        rows,
      },
    }),
  };
}

it('asks for chlorophyll along the axes as the dataset has them', async () => {
  for (const [names, spacing, query] of [
    [['time', 'latitude', 'longitude'], -0.0375, 'chlor_a[last-7:last][(36.4):(36)][(-123.7):(-123.3)]'],
    [
      ['time', 'altitude', 'latitude', 'longitude'],
      0.0375,
      'chlor_a[last-7:last][(0.0)][(36):(36.4)][(-123.7):(-123.3)]',
    ],
  ] as const) {
    await againstLocalServer(
      erddap,
      {},
      ({ url }) =>
        url.pathname.includes('/info/')
          ? axes(names, spacing)
          : color([
              ['2026-01-09T12:00:00Z', 36.2, -123.5, 0.31],
              ['2026-01-10T12:00:00Z', 36.2, -123.5, null],
              ['2026-01-10T12:00:00Z', 36.2, -123.46, -32767],
            ]),
      async (api, asked) => {
        const { value, cellDegrees } = await api.chlorophyll({ lat: 36.2, lon: -123.5, day: null });
        assert.equal(decodeURIComponent(asked[1]?.url.search.slice(1) ?? ''), query);
        assert.ok(!/[[\]()]/.test(asked[1]?.url.search ?? '('), 'brackets are percent-encoded');
        assert.equal(cellDegrees, 0.0375);
        assert.deepEqual(value, {
          times: ['2026-01-09T12:00:00Z', '2026-01-10T12:00:00Z'],
          cells: [{ time: '2026-01-09T12:00:00Z', lat: 36.2, lon: -123.5, mgM3: 0.31 }],
        });
      },
    );
  }
});

it('keeps the box for chlorophyll within the globe, and has none outside the record', () =>
  againstLocalServer(
    erddap,
    { settings: { UPSTREAM_ERDDAP_CHLOROPHYLL_DATASET: 'another' } },
    ({ url }) => (url.pathname.includes('/info/') ? axes(['time', 'latitude', 'longitude'], 0.04) : NOTHING),
    async (api, asked) => {
      assert.equal((await api.chlorophyll({ lat: 89.99, lon: 180, day: '1999-01-01' })).value, null);
      assert.equal(asked[0]?.url.pathname, '/base/info/another/index.json');
      assert.equal(
        decodeURIComponent(asked[1]?.url.search ?? ''),
        '?chlor_a[(1999-01-01T12:00:00Z)][(89.7):(89.7)][(179.8):(179.95)]',
      );
    },
  ));

it('takes no other unit for chlorophyll, no dataset that is gone, and no grid without a direction', async () => {
  const ask = (info: RawReply, data: RawReply) =>
    againstLocalServer(
      erddap,
      {},
      ({ url }) => (url.pathname.includes('/info/') ? info : data),
      (api) => api.chlorophyll({ lat: 0, lon: 0, day: null }),
    );
  const grid = axes(['time', 'latitude', 'longitude'], 0.04);
  for (const [info, data] of [
    [grid, color([], 'sr^-1')],
    [NOTHING, color([])],
    [axes(['time', 'latitude', 'longitude'], Number.NaN), color([])],
    [grid, { body: '<html></html>' }],
  ] as const) {
    await assert.rejects(ask(info, data), UpstreamUnavailable);
  }
});
