/** NASA's Common Metadata Repository: the search for granules (single data files), in UMM JSON. It knows eight collections. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { keyOf, uniform } from './noise.ts';
import { countOf, listOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const MAX_SCANNED = 4_000;
const KNOWN = new Set([
  'short_name',
  'short_name[]',
  'version',
  'collection_concept_id',
  'bounding_box',
  'point',
  'temporal',
  'cloud_cover',
  'platform',
  'page_size',
  'page_num',
  'sort_key',
]);

interface Collection {
  shortName: string;
  version: string;
  provider: string;
  platform: string;
  instrument: string;
  firstDay: string;
  /** The days from one granule to the next. */
  everyDays: number;
  lagDays: number;
  sizeMb: number;
  /** The side of a square granule in degrees; null if a granule covers the whole Earth. */
  tileDegrees: number | null;
}

const COLLECTIONS: readonly Collection[] = [
  whole('GPM_3IMERGDF', '07', 'GES_DISC', 'GPM', 'GMI', '2000-06-01', 1, 2, 28.4),
  whole('MUR-JPL-L4-GLOB-v4.1', '4.1', 'POCLOUD', 'AQUA', 'MODIS', '2002-06-01', 1, 1, 410.2),
  whole('SPL3SMP_E', '006', 'NSIDC_CPRD', 'SMAP', 'SMAP L-BAND RADIOMETER', '2015-03-31', 1, 2, 310.5),
  whole('PACE_OCI_L3M_CHL', '3.1', 'OB_CLOUD', 'PACE', 'OCI', '2024-03-05', 1, 3, 21.7),
  tiled('MOD09GA', '061', 'LPCLOUD', 'Terra', 'MODIS', '2000-02-24', 1, 2, 93.1, 10),
  tiled('MOD13Q1', '061', 'LPCLOUD', 'Terra', 'MODIS', '2000-02-18', 16, 20, 58.3, 10),
  tiled('HLSS30', '2.0', 'LPCLOUD', 'Sentinel-2A', 'Sentinel-2 MSI', '2015-11-28', 5, 3, 181.4, 1),
  tiled('HLSL30', '2.0', 'LPCLOUD', 'LANDSAT-8', 'OLI', '2013-04-11', 8, 3, 142.9, 1),
];

function whole(
  shortName: string,
  version: string,
  provider: string,
  platform: string,
  instrument: string,
  firstDay: string,
  everyDays: number,
  lagDays: number,
  sizeMb: number,
): Collection {
  return {
    shortName,
    version,
    provider,
    platform,
    instrument,
    firstDay,
    everyDays,
    lagDays,
    sizeMb,
    tileDegrees: null,
  };
}

function tiled(
  ...[name, version, provider, platform, instrument, first, every, lag, size, tile]: [
    ...Parameters<typeof whole>,
    number,
  ]
) {
  return {
    ...whole(name, version, provider, platform, instrument, first, every, lag, size),
    tileDegrees: tile,
  };
}

/** A box in degrees. It crosses the antimeridian if `west` is above `east`. */
interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}

interface Granule {
  collection: Collection;
  day: number;
  box: Box;
  id: string;
  /** In percent; null if the collection does not state it. */
  cloudCover: number | null;
}

export function cmr(app: FastifyInstance, { seed, nowMs }: World): void {
  function granulesOf(collection: Collection, box: Box, from: number, to: number): Granule[] {
    const first = Date.parse(collection.firstDay) / DAY_MS;
    const newest = Math.floor(nowMs() / DAY_MS) - collection.lagDays;
    const granules: Granule[] = [];
    for (
      let day = Math.min(newest, to);
      day >= Math.max(first, from) && granules.length < MAX_SCANNED;
      day--
    ) {
      if ((day - first) % collection.everyDays !== 0) continue;
      for (const tile of tilesOf(collection, box)) {
        const key = keyOf(seed, `granule:${collection.shortName}:${tile.west}:${tile.south}`);
        const cloudCover = collection.tileDegrees === null ? null : Math.round(100 * uniform(key, day));
        granules.push({
          collection,
          day,
          box: tile,
          id: `G${1_000_000_000 + (keyOf(key, String(day)) % 1_000_000_000)}-${collection.provider}`,
          cloudCover,
        });
      }
    }
    return granules;
  }

  app.get<{ Querystring: Query }>('/search/granules.umm_json', ({ query }, reply) => {
    const unknown = Object.keys(query).find((name) => !KNOWN.has(name));
    if (unknown !== undefined) return refuse(reply, `Parameter [${unknown}] was not recognized.`);
    const given = query['short_name[]'];
    const names = given === undefined ? [textOf(query, 'short_name') ?? ''] : [given].flat();
    const box = boxOf(query);
    if (box === null) return refuse(reply, 'The box or point is not valid');
    const temporal = listOf(textOf(query, 'temporal'), 2).map((time) => Date.parse(time) / DAY_MS);
    if (temporal.some(Number.isNaN)) return refuse(reply, 'temporal start datetime is invalid');
    const [from = 0, to = Number.MAX_SAFE_INTEGER] = temporal;
    const [, most] = (textOf(query, 'cloud_cover') ?? '').split(',').map(Number);
    const found = COLLECTIONS.filter(
      ({ shortName, platform, version }) =>
        names.includes(shortName) &&
        (textOf(query, 'version') ?? version) === version &&
        (textOf(query, 'platform') ?? platform) === platform,
    )
      .flatMap((collection) => granulesOf(collection, box, Math.ceil(from), Math.floor(to)))
      .filter(({ cloudCover }) => most === undefined || (cloudCover !== null && cloudCover <= most));
    found.sort((a, b) => (textOf(query, 'sort_key') === '-start_date' ? b.day - a.day : a.day - b.day));
    const size = countOf(query, 'page_size', 10, 0, 2_000);
    const start = (countOf(query, 'page_num', 1, 1, 100) - 1) * size;
    return reply
      .header('cmr-hits', found.length)
      .type('application/vnd.nasa.cmr.umm_results+json;version=1.6.6; charset=utf-8')
      .send(
        JSON.stringify({ hits: found.length, took: 12, items: found.slice(start, start + size).map(item) }),
      );
  });
}

function boxOf(query: Query): Box | null {
  const point = listOf(textOf(query, 'point'), 2).map(Number);
  const corners = listOf(textOf(query, 'bounding_box'), 4).map(Number);
  if (point.length === 0 && corners.length === 0) return { west: -180, south: -90, east: 180, north: 90 };
  const [west = Number.NaN, south = Number.NaN, east = west, north = south] =
    corners.length > 0 ? corners : point;
  const valid =
    Math.abs(west) <= 180 &&
    Math.abs(east) <= 180 &&
    Math.abs(south) <= 90 &&
    Math.abs(north) <= 90 &&
    south <= north;
  return valid ? { west, south, east, north } : null;
}

/** The outlines of the granules that touch a box, 12 at most. */
function tilesOf({ tileDegrees }: Collection, box: Box): Box[] {
  if (tileDegrees === null) return [{ west: -180, south: -90, east: 180, north: 90 }];
  const tiles: Box[] = [];
  const east = box.west > box.east ? box.east + 360 : box.east;
  for (
    let south = Math.floor(box.south / tileDegrees) * tileDegrees;
    south <= box.north && south < 90;
    south += tileDegrees
  ) {
    for (
      let west = Math.floor(box.west / tileDegrees) * tileDegrees;
      west <= east && tiles.length < 12;
      west += tileDegrees
    ) {
      const inside = west >= 180 ? west - 360 : west;
      tiles.push({ west: inside, south, east: inside + tileDegrees, north: south + tileDegrees });
    }
  }
  return tiles;
}

function item({ collection, day, box, id, cloudCover }: Granule) {
  const date = new Date(day * DAY_MS).toISOString();
  const name = `SANDBOX.${collection.shortName}.${date.slice(0, 10).replace(/-/g, '')}.${box.south}.${box.west}`;
  const files = `https://data.sandbox.invalid/${collection.shortName}/${name}`;
  return {
    meta: {
      'concept-type': 'granule',
      'concept-id': id,
      'revision-id': 1,
      'native-id': name,
      'provider-id': collection.provider,
      format: 'application/vnd.nasa.cmr.umm+json',
      'revision-date': new Date(day * DAY_MS + collection.lagDays * DAY_MS).toISOString(),
    },
    umm: {
      GranuleUR: name,
      CollectionReference: { ShortName: collection.shortName, Version: collection.version },
      TemporalExtent: {
        RangeDateTime: {
          BeginningDateTime: date,
          EndingDateTime: new Date((day + collection.everyDays) * DAY_MS - 1).toISOString(),
        },
      },
      SpatialExtent: {
        HorizontalSpatialDomain: {
          Geometry: geometryOf(collection, box),
        },
      },
      Platforms: [{ ShortName: collection.platform, Instruments: [{ ShortName: collection.instrument }] }],
      DataGranule: {
        DayNightFlag: 'Day',
        ProductionDateTime: date,
        ArchiveAndDistributionInformation: [
          { Name: `${name}.hdf`, SizeInBytes: Math.round(collection.sizeMb * 1_048_576) },
        ],
      },
      ...(cloudCover === null ? {} : { CloudCover: cloudCover }),
      RelatedUrls: [
        { URL: `${files}.hdf`, Type: 'GET DATA' },
        { URL: `s3://sandbox/${name}.hdf`, Type: 'GET DATA VIA DIRECT ACCESS' },
        { URL: `${files}.jpg`, Type: 'GET RELATED VISUALIZATION' },
        { URL: `${files}.xml`, Type: 'EXTENDED METADATA' },
      ],
    },
  };
}

/** The area of a granule in UMM: a rectangle for the whole Earth, a polygon for a tile. */
function geometryOf({ tileDegrees }: Collection, { west, south, east, north }: Box) {
  if (tileDegrees === null) {
    return {
      BoundingRectangles: [
        {
          WestBoundingCoordinate: west,
          EastBoundingCoordinate: east,
          NorthBoundingCoordinate: north,
          SouthBoundingCoordinate: south,
        },
      ],
    };
  }
  const corner = (Longitude: number, Latitude: number) => ({ Longitude, Latitude });
  const Points = [
    corner(west, south),
    corner(east, south),
    corner(east, north),
    corner(west, north),
    corner(west, south),
  ];
  return { GPolygons: [{ Boundary: { Points } }] };
}

function refuse(reply: FastifyReply, message: string) {
  return reply.code(400).send({ errors: [message] });
}
