import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { againstLocalServer } from '../local-server.fixture.ts';
import { png } from '../picture.fixture.ts';
import { readPicture } from '../picture.ts';
import { gibs } from './gibs.ts';
import {
  DEFAULT_LAYER,
  findLayer,
  type ImageryLayer,
  newestTimes,
  seesPoint,
  tileAt,
  timeName,
  timeOnGrid,
} from './gibs-layers.ts';
import { FIRE_MAPS, VEGETATION_MAP } from './gibs-maps.ts';

function layer(id: string): ImageryLayer {
  const found = findLayer(id);
  assert.ok(found !== null, id);
  return found;
}

describe('layers', () => {
  it('finds a layer under the spelling that clients send', () => {
    assert.equal(layer('GOES_East_ABI_Band13_Clean_Infrared').id, 'GOES-East_ABI_Band13_Clean_Infrared');
    assert.equal(findLayer('GOES-North_ABI_GeoColor'), null);
  });

  it('places tiles as the documentation of GIBS does', () => {
    // The documented example: latitude 29, longitude -16 at level 6 is row 13, column 36.
    const tile = tileAt('250m', 29, -16, 4.5);
    assert.deepEqual(tile, { z: 6, row: 13, col: 36, box: [-18, 27, -13.5, 31.5] });
    // Each level of the pyramid is of 2^z tiles 288 degrees wide, cut off at the edge of the map.
    assert.deepEqual(tileAt('2km', -90, 180, 0.01), { z: 5, row: 19, col: 39, box: [171, -90, 180, -81] });
    assert.deepEqual(tileAt('2km', 0, 0, 360).z, 0);
  });

  it('puts times on the grid of the layer', () => {
    const now = Date.parse('2026-11-21T05:37:12Z');
    const goes = layer('GOES-East_ABI_GeoColor');
    assert.deepEqual(
      newestTimes(goes, now, 2).map((time) => timeName(goes, time)),
      ['2026-11-21T04:50:00Z', '2026-11-21T04:40:00Z'],
    );
    assert.deepEqual(
      newestTimes(DEFAULT_LAYER, now, 2).map((time) => timeName(DEFAULT_LAYER, time)),
      ['2026-11-20', '2026-11-19'],
    );
    // Composites of 8 days start on days 1, 9, ... 361 of the year; the last is short.
    const ndvi = layer('MODIS_Terra_NDVI_8Day');
    const at = (day: string) => timeName(ndvi, timeOnGrid(ndvi, Date.parse(day)));
    assert.deepEqual(['2026-01-08', '2026-01-09', '2026-12-31', '2027-01-01'].map(at), [
      '2026-01-01',
      '2026-01-09',
      '2026-12-27',
      '2027-01-01',
    ]);
  });

  it('knows what a satellite over the equator cannot see', () => {
    const east = layer('GOES-East_ABI_GeoColor');
    assert.equal(seesPoint(east, 29, -90), true);
    assert.equal(seesPoint(east, 35, 139), false);
    // Across the antimeridian, 52.8 degrees from the point below the satellite.
    assert.equal(seesPoint(layer('GOES-West_ABI_GeoColor'), 0, 170), true);
  });
});

describe('pictures', () => {
  it('sees whether a PNG is empty, whichever filter its rows use', () => {
    for (const filter of [0, 1, 2] as const) {
      assert.equal(readPicture(png(9, 7, () => [1, 2, 3, 255], filter))?.singleColor, true);
      assert.equal(
        readPicture(png(9, 7, (x, y) => [1, 2, x === 8 && y === 6 ? 4 : 3, 255], filter))?.singleColor,
        false,
      );
    }
  });

  it('gives size and hash, and refuses anything that is not a picture', () => {
    const bytes = png(9, 7, () => [0, 0, 0, 0]);
    const read = readPicture(bytes);
    assert.deepEqual([read?.widthPx, read?.heightPx, read?.bytes], [9, 7, bytes.length]);
    assert.equal(read?.sha256, createHash('sha256').update(bytes).digest('hex'));
    assert.equal(readPicture(Buffer.from('<html>')), null);
  });
});

describe('gibs', () => {
  const picture = png(4, 4, (x) => [x, 0, 0, 255]);

  it('asks WMS 1.1.1 with west first, and WMTS with the row before the column', () =>
    againstLocalServer(
      gibs,
      {},
      () => ({ body: picture }),
      async (api, asked) => {
        await api.map(DEFAULT_LAYER, '2026-11-20', [-95, 24, -85, 34], { widthPx: 512, heightPx: 512 });
        const tile = await api.tile(DEFAULT_LAYER, '2026-11-20', 'jpg', {
          z: 6,
          row: 13,
          col: 36,
          box: [0, 0, 0, 0],
        });
        const query = asked[0]?.url.searchParams;
        assert.deepEqual(
          ['VERSION', 'SRS', 'BBOX', 'LAYERS', 'TIME', 'WIDTH'].map((name) => query?.get(name)),
          ['1.1.1', 'EPSG:4326', '-95,24,-85,34', DEFAULT_LAYER.id, '2026-11-20', '512'],
        );
        assert.equal(
          asked[1]?.url.pathname,
          `/base/wmts/epsg4326/best/${DEFAULT_LAYER.id}/default/2026-11-20/250m/6/13/36.jpg`,
        );
        assert.equal(tile.value?.bytes, picture.length);
      },
    ));

  it('reads the facts of a picture once, however many ask while it is kept', () =>
    againstLocalServer(
      gibs,
      {},
      () => ({ body: picture }),
      async (api, asked) => {
        const ask = () => api.map(DEFAULT_LAYER, '2026-11-20', [0, 0, 1, 1], { widthPx: 4, heightPx: 4 });
        const [first, second] = [await ask(), await ask()];
        assert.equal(asked.length, 1);
        assert.equal(first.value?.bytes, picture.length);
        assert.equal(second.value, first.value);
      },
    ));

  it('reads an exception with any status as "no picture", and anything else as a failure', async () => {
    const exception =
      '<?xml version="1.0"?><ServiceExceptionReport><ServiceException/></ServiceExceptionReport>';
    for (const [status, body, absent] of [
      [200, exception, true],
      [400, exception, true],
      [404, '', true],
      [200, '<html>maintenance</html>', false],
    ] as const) {
      await againstLocalServer(
        gibs,
        {},
        () => ({ status, body }),
        async (api) => {
          const asking = api.map(DEFAULT_LAYER, '2026-11-20', [0, 0, 1, 1], { widthPx: 4, heightPx: 4 });
          if (absent) assert.equal((await asking).value, null);
          else await assert.rejects(asking, UpstreamUnavailable);
        },
      );
    }
  });

  /** As DescribeDomains answers, with the times of a layer in the range that was asked for. */
  const domains = (times: string) =>
    `<?xml version="1.0" encoding="UTF-8"?>\n<Domains xmlns="http://demo.geo-solutions.it/share/wmts-multidim/wmts_multi_dimensional.xsd" xmlns:ows="http://www.opengis.net/ows/1.1">\n  <SpaceDomain>\n    <BoundingBox crs="urn:ogc:def:crs:OGC:1.3:CRS84" maxx="180" maxy="90" minx="-180" miny="-90"/>\n  </SpaceDomain>\n  <DimensionDomain>\n    <ows:Identifier>time</ows:Identifier>\n    <Domain>${times}</Domain>\n    <Size>1</Size>\n  </DimensionDomain>\n</Domains>\n`;

  it('knows of a day whether there is a map, by the times that the source lists', async () => {
    for (const [reply, published] of [
      [{ body: domains('2026-10-16/2026-10-16/P16D') }, true],
      [{ body: domains('2000-02-18/2000-12-18/P16D,2026-01-01/2026-12-19/P16D') }, true],
      [{ body: domains('2026-10-16') }, true],
      [{ body: domains('2026-10-01/2026-10-15/P1D,2026-10-17/2026-11-01/P1D') }, false],
      [{ body: domains('') }, false],
      [{ body: domains('').replace('<Domain></Domain>', '<Domain/>') }, false],
      [{ status: 400, body: '<ExceptionReport/>' }, false],
      [{ body: '<?xml version="1.0"?>\n<ExceptionReport><Exception/></ExceptionReport>' }, false],
      [{ status: 404, body: '' }, false],
      [{ body: '<html>maintenance</html>' }, null],
      [{ status: 500, body: '' }, null],
    ] as const)
      await againstLocalServer(
        gibs,
        {},
        () => reply,
        async (api, asked) => {
          const asking = api.isPublished(VEGETATION_MAP, '2026-10-16');
          if (published === null) await assert.rejects(asking, UpstreamUnavailable);
          else assert.equal(await asking, published, JSON.stringify(reply));
          assert.equal(
            asked[0]?.url.pathname,
            '/base/wmts/epsg4326/best/1.0.0/MODIS_Terra_L3_NDVI_16Day/default/250m/all/2026-10-16--2026-10-16.xml',
          );
        },
      );
  });

  it('has fires drawn over the picture of the day by one request, and takes nothing but PNG', async () => {
    for (const [reply, is] of [
      [{ body: picture }, 'png'],
      [
        { body: '<?xml version="1.0"?><ServiceExceptionReport><ServiceException/></ServiceExceptionReport>' },
        null,
      ],
      [{ status: 400, body: '' }, null],
      [{ body: Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), Buffer.alloc(90)]) }, 'failure'],
      [{ body: '<html>maintenance</html>' }, 'failure'],
      [{ body: picture.subarray(0, 20) }, 'failure'],
      [{ body: Buffer.concat([picture, Buffer.alloc(5 * 1024 * 1024)]) }, 'failure'],
      [{ body: '' }, 'failure'],
    ] as const)
      await againstLocalServer(
        gibs,
        {},
        () => reply,
        async (api, asked) => {
          const map = FIRE_MAPS.VIIRS_NOAA20_NRT;
          const asking = api.drawn(map, '2026-11-20', [-95, 24, -85, 34], { widthPx: 4, heightPx: 4 });
          if (is === 'failure') await assert.rejects(asking, UpstreamUnavailable);
          else assert.deepEqual((await asking).value, is === null ? null : Buffer.from(picture));
          assert.equal(
            asked[0]?.url.searchParams.get('LAYERS'),
            'VIIRS_NOAA20_CorrectedReflectance_TrueColor,VIIRS_NOAA20_Thermal_Anomalies_375m_All',
          );
        },
      );
  });
});
