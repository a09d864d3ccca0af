import assert from 'node:assert/strict';
import { it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { cmr } from './cmr.ts';

const ASKED = {
  collections: ['MOD09GA', 'HLSS30'],
  box: { west: 179.5, south: -17.5, east: -179.5, north: -16.5 },
  first: '2026-01-01',
  last: '2026-01-31',
  platform: null,
  maxCloudCoverPercent: 20,
  limit: 3,
};

const item = {
  meta: {
    'concept-type': 'granule',
    'concept-id': 'G9000000001-LPCLOUD',
    'revision-id': 2,
    'provider-id': 'LPCLOUD',
  },
  umm: {
    GranuleUR: 'SYNTHETIC.T60KXF.2026010',
    CollectionReference: { ShortName: 'HLSS30', Version: '2.0' },
    TemporalExtent: {
      RangeDateTime: {
        BeginningDateTime: '2026-01-10T22:31:07.000Z',
        EndingDateTime: '2026-01-10T22:31:29.000Z',
      },
    },
    SpatialExtent: {
      HorizontalSpatialDomain: {
        Geometry: {
          GPolygons: [
            {
              Boundary: {
                Points: [
                  { Longitude: 179.6, Latitude: -17.4 },
                  { Longitude: -179.4, Latitude: -17.4 },
                  { Longitude: -179.4, Latitude: -16.4 },
                  { Longitude: 179.6, Latitude: -16.4 },
                  { Longitude: 179.6, Latitude: -17.4 },
                ],
              },
            },
          ],
        },
      },
    },
    Platforms: [{ ShortName: 'Sentinel-2A', Instruments: [{ ShortName: 'Sentinel-2 MSI' }] }],
    CloudCover: 12,
    DataGranule: { ArchiveAndDistributionInformation: [{ Name: 'a', Size: 1.5, SizeUnit: 'MB' }] },
    RelatedUrls: [
      { URL: 'https://data.example/a.tif', Type: 'GET DATA' },
      { URL: 's3://bucket/a.tif', Type: 'GET DATA VIA DIRECT ACCESS' },
      { URL: 'javascript:alert(1)', Type: 'GET DATA' },
      { URL: 'https://data.example/a.jpg', Type: 'GET RELATED VISUALIZATION' },
    ],
  },
};
const found = (items: unknown[], hits: unknown = items.length): RawReply => ({
  headers: { 'content-type': 'application/vnd.nasa.cmr.umm_results+json;version=1.6.6' },
  body: JSON.stringify({ hits, took: 31, items }),
});

it('asks for several collections in one box, newest first, and reads outlines across the antimeridian', () =>
  againstLocalServer(
    cmr,
    {},
    () => found([item], 57),
    async (api, asked) => {
      const { value } = await api.granules(ASKED);
      assert.equal(value.hits, 57);
      assert.deepEqual(value.granules, [
        {
          id: 'G9000000001-LPCLOUD',
          title: 'SYNTHETIC.T60KXF.2026010',
          collection: 'HLSS30',
          version: '2.0',
          dataCenter: 'LPCLOUD',
          platform: 'Sentinel-2A',
          instrument: 'Sentinel-2 MSI',
          start: '2026-01-10T22:31:07.000Z',
          end: '2026-01-10T22:31:29.000Z',
          cloudCoverPercent: 12,
          box: { west: 179.6, south: -17.4, east: -179.4, north: -16.4 },
          dataUrls: ['https://data.example/a.tif'],
          browseUrl: 'https://data.example/a.jpg',
          sizeBytes: 1_572_864,
        },
      ]);
      const { searchParams, pathname } = asked[0]?.url ?? new URL('http://none');
      assert.equal(pathname, '/base/search/granules.umm_json');
      assert.deepEqual(searchParams.getAll('short_name[]'), ['MOD09GA', 'HLSS30']);
      assert.equal(searchParams.get('bounding_box'), '179.5,-17.5,-179.5,-16.5');
      assert.equal(searchParams.get('temporal'), '2026-01-01T00:00:00Z,2026-01-31T23:59:59Z');
      assert.equal(searchParams.get('cloud_cover'), '0,20');
      assert.equal(searchParams.get('sort_key'), '-start_date');
    },
  ));

it('reads what files leave out as null, fill values too', () =>
  againstLocalServer(
    cmr,
    {},
    () =>
      found([
        {
          meta: item.meta,
          umm: {
            GranuleUR: 'g',
            CollectionReference: { ShortName: 'OLD' },
            TemporalExtent: { SingleDateTime: '2026-01-10T00:00:00Z' },
            CloudCover: -9999,
          },
        },
      ]),
    async (api) => {
      const [granule] = (await api.granules({ ...ASKED, box: null })).value.granules;
      assert.deepEqual(
        [granule?.cloudCoverPercent, granule?.box, granule?.sizeBytes, granule?.platform, granule?.end],
        [null, null, null, null, '2026-01-10T00:00:00.000Z'],
      );
    },
  ));

it('tells nothing found from a failure', async () => {
  const ask = (reply: RawReply) =>
    againstLocalServer(
      cmr,
      {},
      () => reply,
      (api) => api.granules(ASKED),
    );
  assert.deepEqual((await ask(found([]))).value, { hits: 0, granules: [] });
  for (const wrong of [
    { status: 400, body: JSON.stringify({ errors: ['Parameter [foo] was not recognized.'] }) },
    { body: JSON.stringify({ errors: ['Something went wrong'] }) },
    { body: '<html></html>' },
    found([{ meta: {}, umm: {} }]),
    found([], 'many'),
  ]) {
    await assert.rejects(ask(wrong), UpstreamUnavailable);
  }
});
