import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ServiceFailure, UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import type { TractHomeValue } from '../../upstreams/adapters/acs.ts';
import type { CensusAddress } from '../../upstreams/adapters/censusgeocoder.ts';
import type { StateIndex } from '../../upstreams/adapters/fhfa.ts';
import type { FoundSales, Sale } from '../../upstreams/adapters/sales.ts';
import { down, notConfigured, reply, runContext } from '../run-context.fixture.ts';
import valuation from './property-valuation.ts';

const FOUND: CensusAddress = {
  address: '1 MAIN ST, SPRINGFIELD, IL, 62701',
  lat: 39.8,
  lon: -89.65,
  tract: { state: '17', county: '167', tract: '000100' },
};
const HOME: TractHomeValue = { name: 'Census Tract 1', medianUsd: 200_000, marginUsd: 20_000, beyond: null };

/** 100 to 2023, 150 in 2024, the newest survey's last year, then 165; 2026 has one quarter. */
const QUARTERS: StateIndex[] = [2020, 2021, 2022, 2023, 2024, 2025].flatMap((year) =>
  [1, 2, 3, 4].map((quarter) => ({ year, quarter, index: year < 2024 ? 100 : year === 2024 ? 150 : 160 })),
);
QUARTERS.push({ year: 2026, quarter: 1, index: 165 });

interface Sources {
  addresses?: CensusAddress[];
  /** By the survey's last year; one that is left out is not published. */
  homes?: Record<number, TractHomeValue[]>;
  quarters?: StateIndex[];
  asked?: string[];
  /** What the operator's source of sales has; left out, there is none. */
  sold?: FoundSales | (() => Promise<never>);
}

/** Of a house some 111 m away, in the newest quarter of the index. */
const SALE: Sale = {
  id: 's-1',
  soldOn: '2026-02-10',
  priceUsd: 300_000,
  lat: 39.801,
  lon: -89.65,
  type: 'house',
  squareFeet: 2_000,
};
const sold = (...changes: Partial<Sale>[]): FoundSales => ({
  sales: changes.map((change, nth) => ({ ...SALE, id: `s-${nth}`, ...change })),
  malformed: 0,
  firstProblem: null,
});
const PUBLISHER = { name: 'County records', url: 'https://records.test/', terms: 'Credit asked' };
async function run(
  body: Record<string, unknown>,
  { addresses = [FOUND], homes = { 2024: [HOME] }, quarters = QUARTERS, asked = [], sold }: Sources = {},
) {
  const made = await valuation.run(
    valuation.input.parse(valuation.adapt?.(body) ?? body),
    runContext({
      censusgeocoder: {
        addresses: async (address) => {
          asked.push(address);
          return reply('censusgeocoder', addresses);
        },
      },
      acs: { homeValue: async ({ year }) => reply('acs', homes[year] ?? null) },
      fhfa: {
        stateIndex: async (state) => {
          assert.equal(state, 'IL');
          return reply('fhfa', quarters);
        },
      },
      sales: {
        publisher: PUBLISHER,
        near: typeof sold === 'object' ? async () => reply('sales', sold) : (sold ?? notConfigured('sales')),
      },
    }),
  );
  // biome-ignore lint/suspicious/noExplicitAny: tests look into the whole answer
  return { ...made, data: (valuation.output.parse(made.fields) as { data: any }).data };
}
const failsWith =
  (code: string, field = 'address') =>
  (error: unknown) => {
    assert.ok(error instanceof ServiceFailure, String(error));
    assert.deepEqual([error.status, error.code, error.field], [422, code, field]);
    return true;
  };
const ADDRESS = '1 Main St, Springfield, IL';

describe('property-valuation', () => {
  it('moves the tract’s median and both margins as by hand', async () => {
    const { data, sources, notes } = await run({
      address: '1 Main St\n Springfield, IL, USA',
      squareFeet: '1800',
      bedrooms: 3,
      propertyId: 'p-1',
    });
    // The survey stands between (4 × 100 + 150) / 5 = 110 and 150: in the middle at 130. 200,000 × 165 / 130.
    assert.equal(data.estimatedValue, 253_800);
    // 180,000 × 165 / 150, and 220,000 × 165 / 110.
    assert.deepEqual(data.valuationRange, { low: 198_000, high: 330_000 });
    // Half the width is 66,000, 26.0 percent.
    assert.equal(data.confidenceScore, 37);
    assert.deepEqual(data.priceIndex, {
      state: 'IL',
      indexQuarter: '2026Q1',
      factor: 1.2692,
      lowFactor: 1.1,
      highFactor: 1.5,
    });
    assert.deepEqual(data.marketTrends, { oneYearPct: 3.1, fiveYearsPct: 65 });
    assert.deepEqual(
      data.keyFactors.map(({ impact }: { impact: number }) => impact),
      [200_000, 53_800],
    );
    assert.deepEqual([data.comparablesUsed, data.comparables], [0, []]);
    assert.match(data.comparableInsights, /has no source of sales/);
    assert.deepEqual([data.comparablesWeight, data.comparablesSource], [0, null]);
    assert.deepEqual(data.inputsNotUsed, ['squareFeet', 'bedrooms']);
    assert.deepEqual(
      [data.propertyId, data.address, data.tract.geoId, data.tract.surveyYears],
      ['p-1', FOUND.address, '17167000100', '2020-2024'],
    );
    assert.deepEqual(
      sources.map(({ name, asOf }) => [name, asOf]),
      [
        ['acs', '2024-12-31T00:00:00.000Z'],
        ['fhfa', '2026-03-31T00:00:00.000Z'],
        ['censusgeocoder', null],
      ],
    );
    assert.equal(notes.length, 1);
  });

  it('mixes the tract’s estimate with comparable sales as by hand', async () => {
    // 2025Q1 stands at 160, the newest quarter at 165; the newest quarter lasts until the index has another.
    const { data, fields, sources, method, notes } = await run(
      { address: ADDRESS, propertyType: 'Single Family', squareFeet: 1_600, bedrooms: 3 },
      {
        sold: sold(
          { soldOn: '2025-03-31', priceUsd: 320_000 },
          { soldOn: '2026-03-31', priceUsd: 300_000, squareFeet: 1_600 },
          { soldOn: '2026-11-20', priceUsd: 280_000, squareFeet: 1_400 },
        ),
      },
    );
    assert.deepEqual(
      data.comparables.map(({ valueUsd, indexFactor }: Record<string, number>) => [valueUsd, indexFactor]),
      [
        [300_000, 1],
        [320_000, 1],
        [264_000, 1.0313],
      ],
      '300,000 as it is; 280,000 × 1600 / 1400; 320,000 × 165 / 160 × 1600 / 2000',
    );
    // n = 3, so half and half: (300,000 + 253,846) / 2.
    assert.deepEqual([data.comparablesWeight, data.estimatedValue], [0.5, 276_900]);
    // Quartiles 282,000 and 310,000, the tract’s range 198,000 and 330,000.
    assert.deepEqual(data.valuationRange, { low: 240_000, high: 320_000 });
    // Half the width is 40,000, 14.4 percent: 42.8 × 1.25.
    assert.equal(data.confidenceScore, 53);
    assert.deepEqual(
      data.keyFactors.map(({ impact }: { impact: number }) => impact),
      [200_000, 53_800, 23_100],
    );
    assert.deepEqual(
      data.comparables.map(({ distanceMeters, soldOn }: Record<string, unknown>) => [distanceMeters, soldOn]),
      [
        [111, '2026-03-31'],
        [111, '2026-11-20'],
        [111, '2025-03-31'],
      ],
    );
    assert.equal(data.comparablesUsed, 3);
    assert.deepEqual(data.comparablesSource, PUBLISHER);
    assert.deepEqual(data.inputsNotUsed, ['bedrooms']);
    assert.match(String(fields.poweredBy), /, County records$/);
    assert.match(method, /n \/ \(n \+ 3\)/);
    assert.ok(sources.some(({ name }) => name === 'sales'));
    assert.doesNotMatch(notes.join(), /squareFeet/);
  });

  it('compares three sales at least, or none, and says why', async () => {
    const plain = (await run({ address: ADDRESS, squareFeet: 2_000 })).data;
    for (const [given, why, body] of [
      [sold({}, {}), /2 of 2 sales fit, and fewer than 3/, {}],
      [sold(), /0 of 0 sales fit/, {}],
      [sold({}, {}, {}), /propertyType is none of house, townhouse, condo/, { propertyType: 'houseboat' }],
      [down('sales'), /did not answer as it should \(upstream_down\)/, {}],
      [
        sold({}, {}, { type: 'condo' }),
        /2 of 3 sales fit \(left out: 1 of another kind\)/,
        { propertyType: 'house' },
      ],
    ] as const) {
      const { data, method } = await run({ address: ADDRESS, squareFeet: 2_000, ...body }, { sold: given });
      assert.match(data.comparableInsights, why);
      assert.deepEqual(
        [data.comparablesUsed, data.comparables, data.comparablesSource, data.comparablesWeight],
        [0, [], null, 0],
      );
      assert.deepEqual(
        [data.estimatedValue, data.valuationRange, data.confidenceScore],
        [plain.estimatedValue, plain.valuationRange, plain.confidenceScore],
      );
      assert.doesNotMatch(method, /comparables/);
      assert.ok(data.inputsNotUsed.includes('squareFeet'));
    }
  });

  it('leads the range by the other end where prices have fallen', async () => {
    const fallen = QUARTERS.map((each) => ({ ...each, index: 200 - each.index }));
    const { data } = await run({ address: ADDRESS }, { quarters: fallen });
    const { low, high } = data.valuationRange;
    assert.ok(low < data.estimatedValue && data.estimatedValue < high, JSON.stringify(data));
    assert.ok(data.priceIndex.lowFactor < data.priceIndex.highFactor);
  });

  it('says why what it does not know is null', async () => {
    const { data, notes } = await run(
      { address: ADDRESS },
      {
        homes: { 2024: [{ ...HOME, marginUsd: null }] },
        quarters: QUARTERS.filter(({ year, quarter }) => year !== 2025 || quarter !== 1),
      },
    );
    assert.deepEqual([data.valuationRange, data.confidenceScore], [{ low: null, high: null }, null]);
    assert.deepEqual(data.marketTrends, { oneYearPct: null, fiveYearsPct: 65 });
    assert.match(notes.join(' '), /without a margin.* oneYearPct/);
  });

  it('never lets a margin that is wider than the median lead below nothing', async () => {
    const { data } = await run({ address: ADDRESS }, { homes: { 2024: [{ ...HOME, marginUsd: 900_000 }] } });
    assert.deepEqual([data.valuationRange.low, data.confidenceScore], [0, 0]);
  });

  it('takes the survey of the year before while the newest is not out', async () => {
    const earlier = [2019].flatMap((year) => [1, 2, 3, 4].map((quarter) => ({ year, quarter, index: 100 })));
    const { data } = await run(
      { address: ADDRESS },
      { homes: { 2023: [HOME] }, quarters: [...earlier, ...QUARTERS] },
    );
    assert.deepEqual([data.tract.surveyYears, data.estimatedValue], ['2019-2023', 330_000]);
    await assert.rejects(run({ address: ADDRESS }, { homes: {} }), failsWith('NO_VALUE'));
  });

  it('asks nobody about other countries, and strikes the country’s own name', async () => {
    const asked: string[] = [];
    for (const address of [
      '10 Downing Street, London, UK',
      'Pariser Platz 1, Berlin, germany',
      '1 Rue, Paris, France.',
    ])
      await assert.rejects(run({ address }, { asked }), failsWith('OUT_OF_COVERAGE'));
    assert.equal(asked.length, 0);
    for (const end of ['Georgia', 'New Mexico', 'Puerto Rico', 'GA, United States of America', 'GA U.S.A.'])
      await run({ address: `1 Main St, Rome, ${end}` }, { asked });
    assert.deepEqual(
      asked.map((each) => each.slice('1 Main St, Rome, '.length)),
      ['Georgia', 'New Mexico', 'Puerto Rico', 'GA', 'GA'],
    );
  });

  it('has no answer where the address, its tract, its value or its index is not known', async () => {
    const refused = (sources: Sources, code: string) =>
      assert.rejects(run({ address: ADDRESS }, sources), failsWith(code));
    await refused({ addresses: [] }, 'OUT_OF_COVERAGE');
    await refused({ addresses: [{ ...FOUND, tract: null }] }, 'NO_TRACT');
    const elsewhere = { ...FOUND, tract: { state: '17', county: '167', tract: '000200' } };
    await refused({ addresses: [FOUND, elsewhere] }, 'AMBIGUOUS_ADDRESS');
    assert.equal(
      (await run({ address: ADDRESS }, { addresses: [FOUND, FOUND] })).data.address,
      FOUND.address,
    );
    await refused({ homes: { 2024: [] } }, 'NO_VALUE');
    await refused({ homes: { 2024: [{ ...HOME, medianUsd: null }] } }, 'NO_VALUE');
    await refused({ homes: { 2024: [{ ...HOME, medianUsd: null, beyond: 'above' }] } }, 'VALUE_BEYOND_SCALE');
    await refused({ quarters: [] }, 'NO_PRICE_INDEX');
    await refused({ quarters: QUARTERS.slice(1) }, 'NO_PRICE_INDEX');
  });

  it('values homes alone, and refuses what cannot be meant', async () => {
    for (const propertyType of ['Commercial', 'vacant_land', 'office', 'multi-family'])
      await assert.rejects(run({ address: ADDRESS, propertyType }), failsWith('NOT_A_HOME', 'propertyType'));
    for (const propertyType of [
      'house',
      'condo',
      'single_family',
      'residential',
      'townhouse',
      'Highland home',
    ])
      await run({ address: ADDRESS, propertyType }, { sold: sold({}, {}, {}) });
    for (const body of [
      {},
      { address: '' },
      { address: 7 },
      { address: 'a'.repeat(101) },
      { address: '1 Main\u0000 St' },
      { address: ADDRESS, squareFeet: 'many' },
      { address: ADDRESS, squareFeet: 0 },
    ]) {
      const read = valuation.input.safeParse(valuation.adapt?.(body) ?? body);
      assert.equal(read.success, false, JSON.stringify(body));
    }
  });

  it('is no answer while a source is down', async () => {
    const context = runContext({
      censusgeocoder: { addresses: async () => reply('censusgeocoder', [FOUND]) },
      acs: { homeValue: down('acs') },
      fhfa: { stateIndex: async () => reply('fhfa', QUARTERS) },
      sales: { near: notConfigured('sales') },
    });
    await assert.rejects(
      valuation.run(valuation.input.parse({ address: ADDRESS }), context),
      UpstreamUnavailable,
    );
  });
});
