import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { acs } from './acs.ts';
import { censusgeocoder, STATE_LETTERS } from './censusgeocoder.ts';
import { fhfa } from './fhfa.ts';

describe('censusgeocoder', () => {
  const match = (change: Record<string, unknown> = {}) => ({
    tigerLine: { side: 'L', tigerLineId: '76355984' },
    geographies: {
      'Census Tracts': [
        { GEOID: '24033802405', STATE: '24', COUNTY: '033', TRACT: '802405', NAME: 'Census Tract 8024.05' },
      ],
    },
    coordinates: { x: -76.92748, y: 38.84601 },
    addressComponents: { zip: '20233', streetName: 'SILVER HILL', city: 'WASHINGTON', state: 'DC' },
    matchedAddress: '4600 SILVER HILL RD, WASHINGTON, DC, 20233',
    ...change,
  });
  const replyOf = (...addressMatches: unknown[]): RawReply => ({
    body: JSON.stringify({ result: { input: {}, addressMatches } }),
  });
  const ask = (reply: RawReply) =>
    againstLocalServer(
      censusgeocoder,
      {},
      () => reply,
      (api) => api.addresses('4600 Silver Hill Rd'),
    );

  it('asks for tracts of today, and reads x as east and y as north', () =>
    againstLocalServer(
      censusgeocoder,
      {},
      () => replyOf(match()),
      async (api, asked) => {
        const { value } = await api.addresses('4600 Silver Hill Rd, 20233 & more');
        assert.equal(asked[0]?.url.pathname, '/base/geographies/onelineaddress');
        assert.deepEqual(Object.fromEntries(asked[0]?.url.searchParams ?? []), {
          address: '4600 Silver Hill Rd, 20233 & more',
          benchmark: 'Public_AR_Current',
          vintage: 'Current_Current',
          layers: 'Census Tracts',
          format: 'json',
        });
        assert.deepEqual(value, [
          {
            address: '4600 SILVER HILL RD, WASHINGTON, DC, 20233',
            lat: 38.84601,
            lon: -76.92748,
            tract: { state: '24', county: '033', tract: '802405' },
          },
        ]);
      },
    ));

  it('knows the letters of each state by its code', () => {
    assert.equal(STATE_LETTERS.size, 52);
    assert.deepEqual(
      ['01', '11', '24', '56', '72'].map((code) => STATE_LETTERS.get(code)),
      ['AL', 'DC', 'MD', 'WY', 'PR'],
    );
  });

  it('has no address, or no tract, when the geocoder says so', async () => {
    assert.deepEqual((await ask(replyOf())).value, []);
    const refusal = '{"errors":["Address cannot be empty and cannot exceed 100 characters"],"status":"400"}';
    assert.deepEqual((await ask({ status: 400, body: refusal })).value, []);
    for (const geographies of [{}, { 'Census Tracts': [] }])
      assert.equal((await ask(replyOf(match({ geographies })))).value[0]?.tract, null);
  });

  it('refuses any other reply', async () => {
    for (const wrong of [
      { body: '<html></html>' },
      { body: '{"result":{}}' },
      replyOf(match({ coordinates: { x: 200, y: 0 } })),
      replyOf(match({ geographies: { 'Census Tracts': [{ STATE: '24', COUNTY: '33', TRACT: '8024.05' }] } })),
    ]) {
      await assert.rejects(ask(wrong), UpstreamUnavailable, JSON.stringify(wrong));
    }
  });
});

describe('acs', () => {
  const KEY = 'a-key-of-an-operator';
  const ASKED = { year: 2024, state: '24', county: '033', tract: '802405' };
  const HEAD = ['NAME', 'B25077_001E', 'B25077_001M', 'state', 'county', 'tract'];
  const replyOf = (estimate: string | null, margin: string | null): RawReply => ({
    body: JSON.stringify([HEAD, ['Census Tract 8024.05', estimate, margin, '24', '033', '802405']]),
  });
  const ask = (reply: RawReply) =>
    againstLocalServer(
      acs,
      { apiKey: KEY },
      () => reply,
      (api) => api.homeValue(ASKED),
    );

  it('asks for the median and its margin, with the key, and shows the key nowhere', () =>
    againstLocalServer(
      acs,
      { apiKey: KEY },
      () => replyOf('412300', '23456'),
      async (api, asked) => {
        const { value, source } = await api.homeValue(ASKED);
        assert.equal(asked[0]?.url.pathname, '/base/2024/acs/acs5');
        assert.deepEqual(Object.fromEntries(asked[0]?.url.searchParams ?? []), {
          get: 'NAME,B25077_001E,B25077_001M',
          for: 'tract:802405',
          in: 'state:24 county:033',
          key: KEY,
        });
        assert.ok(!JSON.stringify(source).includes(KEY));
        assert.deepEqual(value, [
          { name: 'Census Tract 8024.05', medianUsd: 412_300, marginUsd: 23_456, beyond: null },
        ]);
      },
    ));

  it('reads special values as what they mean, never as amounts', async () => {
    const read = async (estimate: string | null, margin: string | null) => {
      const home = (await ask(replyOf(estimate, margin))).value?.[0];
      return [home?.medianUsd, home?.marginUsd, home?.beyond];
    };
    assert.deepEqual(await read('-666666666', '-222222222'), [null, null, null]);
    assert.deepEqual(await read(null, null), [null, null, null]);
    assert.deepEqual(await read('412300', '-555555555'), [412_300, null, null]);
    assert.deepEqual(await read('2000001', '-333333333'), [null, null, 'above']);
    assert.deepEqual(await read('9999', '5'), [null, null, 'below']);
  });

  it('distinguishes an unknown tract from a survey that is not published', async () => {
    assert.deepEqual((await ask({ status: 204, body: '' })).value, []);
    assert.equal((await ask({ status: 404, body: 'error: unknown dataset' })).value, null);
  });

  it('does not take a page or half a table for an answer', async () => {
    for (const wrong of [
      { body: '<html><head><title>Invalid Key</title></head></html>' },
      { body: '[]' },
      { body: JSON.stringify([['NAME'], ['Census Tract 1']]) },
      replyOf('about 5', '5'),
      replyOf('5', ''),
    ]) {
      await assert.rejects(ask(wrong), (error: Error) => {
        assert.ok(error instanceof UpstreamUnavailable, JSON.stringify(wrong));
        return !error.message.includes(KEY);
      });
    }
  });
});

describe('fhfa', () => {
  const ask = (body: string) =>
    againstLocalServer(
      fhfa,
      {},
      () => ({ headers: { 'content-type': 'text/csv' }, body }),
      async (api, asked) => {
        const reply = await api.stateIndex('DC');
        assert.equal(asked[0]?.url.pathname, '/base/hpi/download/quarterly_datasets/hpi_at_state.csv');
        assert.deepEqual((await api.stateIndex('PR')).value, []);
        return reply.value;
      },
    );
  const DC = [
    { year: 2025, quarter: 4, index: 1_020.5 },
    { year: 2026, quarter: 1, index: 1_031.25 },
  ];

  it('reads it with and without a line of names, quoted, in any order, and leaves out quarters without an index', async () => {
    assert.deepEqual(await ask('AK,1975,1,62.05\nDC,2025,4,1020.50\nDC,2026,1,1031.25\n'), DC);
    assert.deepEqual(
      await ask('"DC","2026","1","1031.25"\r\n"DC","2025","4","1020.50"\r\n"DC",1975,1,.\r\n'),
      DC,
    );
    assert.deepEqual(
      await ask('\uFEFFstate,yr,qtr,index_nsa,index_sa\nDC,2025,4,1020.50,1\nDC,2026,1,1031.25,2\n'),
      DC,
    );
    assert.deepEqual(await ask('index,state,quarter,year\n1020.50,DC,4,2025\n1031.25,DC,1,2026\n'), DC);
  });

  it('refuses any other reply', async () => {
    for (const wrong of [
      '',
      '<html><body>Not found</body></html>',
      'state,year,quarter,index\n',
      'DC,2026,5,1031.25',
      'DC,2026,1,1031.25\nDC,2026,1,1031.26',
      'DC,2026,1,-3',
      'DC,2026,1',
      'state,year,quarter\nDC,2026,1',
      'DC,2026,1,many',
    ]) {
      await assert.rejects(ask(wrong), UpstreamUnavailable, wrong);
    }
  });
});
