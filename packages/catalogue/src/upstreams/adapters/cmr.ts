import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** Degrees; where `west` is above `east` the box crosses the antimeridian. */
export interface GranuleBox {
  west: number;
  south: number;
  east: number;
  north: number;
}

export interface Granule {
  id: string;
  title: string;
  collection: string;
  version: string;
  dataCenter: string;
  platform: string | null;
  instrument: string | null;
  /** ISO 8601. */
  start: string;
  end: string;
  /** Percent of the picture under clouds; null where the collection does not say. */
  cloudCoverPercent: number | null;
  /** West, south, east, north; null where the granule has neither box nor outline. */
  box: GranuleBox | null;
  dataUrls: string[];
  browseUrl: string | null;
  sizeBytes: number | null;
}

const degrees = z.number().min(-180).max(180);
const rectangle = z.looseObject({
  WestBoundingCoordinate: degrees,
  EastBoundingCoordinate: degrees,
  NorthBoundingCoordinate: degrees,
  SouthBoundingCoordinate: degrees,
});
const polygon = z.looseObject({
  Boundary: z.looseObject({
    Points: z.array(z.looseObject({ Longitude: degrees, Latitude: degrees })).max(5_000),
  }),
});
const time = z.string().refine((text) => !Number.isNaN(Date.parse(text)), 'not a time');

const item = z
  .looseObject({
    meta: z.looseObject({ 'concept-id': z.string().min(1), 'provider-id': z.string() }),
    umm: z.looseObject({
      GranuleUR: z.string(),
      CollectionReference: z.looseObject({ ShortName: z.string().nullish(), Version: z.string().nullish() }),
      TemporalExtent: z
        .looseObject({
          RangeDateTime: z.looseObject({ BeginningDateTime: time, EndingDateTime: time.nullish() }).nullish(),
          SingleDateTime: time.nullish(),
        })
        .nullish(),
      SpatialExtent: z
        .looseObject({
          HorizontalSpatialDomain: z
            .looseObject({
              Geometry: z
                .looseObject({
                  BoundingRectangles: z.array(rectangle).max(100).nullish(),
                  GPolygons: z.array(polygon).max(100).nullish(),
                })
                .nullish(),
            })
            .nullish(),
        })
        .nullish(),
      Platforms: z
        .array(
          z.looseObject({
            ShortName: z.string(),
            Instruments: z.array(z.looseObject({ ShortName: z.string() })).nullish(),
          }),
        )
        .nullish(),
      CloudCover: z.number().nullish(),
      DataGranule: z
        .looseObject({
          ArchiveAndDistributionInformation: z
            .array(
              z.looseObject({
                SizeInBytes: z.number().nonnegative().nullish(),
                Size: z.number().nonnegative().nullish(),
                SizeUnit: z.string().nullish(),
              }),
            )
            .nullish(),
        })
        .nullish(),
      RelatedUrls: z
        .array(z.looseObject({ URL: z.string(), Type: z.string() }))
        .max(500)
        .nullish(),
    }),
  })
  .transform(({ meta, umm }, context): Granule => {
    const range = umm.TemporalExtent?.RangeDateTime;
    const start = range?.BeginningDateTime ?? umm.TemporalExtent?.SingleDateTime;
    if (start === null || start === undefined) {
      context.addIssue({ code: 'custom', message: 'a granule without a time' });
      return z.NEVER;
    }
    const urls = umm.RelatedUrls ?? [];
    const cloud = umm.CloudCover ?? null;
    return {
      id: meta['concept-id'],
      title: umm.GranuleUR,
      collection: umm.CollectionReference.ShortName ?? '',
      version: umm.CollectionReference.Version ?? '',
      dataCenter: meta['provider-id'],
      platform: umm.Platforms?.[0]?.ShortName ?? null,
      instrument: umm.Platforms?.[0]?.Instruments?.[0]?.ShortName ?? null,
      start: new Date(start).toISOString(),
      end: new Date(range?.EndingDateTime ?? start).toISOString(),
      // Some collections write fill values there.
      cloudCoverPercent: cloud !== null && cloud >= 0 && cloud <= 100 ? cloud : null,
      box: outline(umm.SpatialExtent?.HorizontalSpatialDomain?.Geometry ?? {}),
      dataUrls: urls
        .filter(({ Type, URL }) => Type === 'GET DATA' && URL.startsWith('https://'))
        .slice(0, 20)
        .map(({ URL }) => URL),
      browseUrl:
        urls.find(({ Type, URL }) => Type === 'GET RELATED VISUALIZATION' && URL.startsWith('https://'))
          ?.URL ?? null,
      sizeBytes: sizeOf(umm.DataGranule?.ArchiveAndDistributionInformation?.[0]),
    };
  });

const UNIT_BYTES: Readonly<Record<string, number>> = { KB: 1_024, MB: 1_048_576, GB: 1_073_741_824 };

function sizeOf(
  file:
    | {
        SizeInBytes?: number | null | undefined;
        Size?: number | null | undefined;
        SizeUnit?: string | null | undefined;
      }
    | undefined,
): number | null {
  if (file?.SizeInBytes != null) return file.SizeInBytes;
  const unit = UNIT_BYTES[file?.SizeUnit ?? ''];
  return file?.Size == null || unit === undefined ? null : Math.round(file.Size * unit);
}

/**
 * The box around a granule's rectangle or outline. A box that spans half the globe or more crosses the antimeridian
 * instead.
 */
function outline(geometry: {
  BoundingRectangles?: z.output<typeof rectangle>[] | null | undefined;
  GPolygons?: z.output<typeof polygon>[] | null | undefined;
}): GranuleBox | null {
  const [box] = geometry.BoundingRectangles ?? [];
  if (box !== undefined) {
    return {
      west: box.WestBoundingCoordinate,
      south: box.SouthBoundingCoordinate,
      east: box.EastBoundingCoordinate,
      north: box.NorthBoundingCoordinate,
    };
  }
  const points = geometry.GPolygons?.[0]?.Boundary.Points ?? [];
  if (points.length === 0) return null;
  const longitudes = points.map(({ Longitude }) => Longitude);
  const latitudes = points.map(({ Latitude }) => Latitude);
  const crosses = Math.max(...longitudes) - Math.min(...longitudes) > 180;
  return {
    west: Math.min(...(crosses ? longitudes.filter((east) => east > 0) : longitudes)),
    south: Math.min(...latitudes),
    east: Math.max(...(crosses ? longitudes.filter((east) => east < 0) : longitudes)),
    north: Math.max(...latitudes),
  };
}

const found = z
  .looseObject({ hits: z.number().int().nonnegative(), items: z.array(item).max(2_000) })
  .transform(({ hits, items }) => ({ hits, granules: items }));

export interface GranuleSearch {
  /** Short names of collections; without any, the search is slow and incomplete. */
  collections: readonly string[];
  box: GranuleBox | null;
  /** YYYY-MM-DD, both included. */
  first: string;
  last: string;
  platform: string | null;
  maxCloudCoverPercent: number | null;
  limit: number;
}

/**
 * NASA's Common Metadata Repository, in UMM JSON. Unlike the shorter JSON format it names platform and instrument, and
 * has the number of hits in its body. https://cmr.earthdata.nasa.gov/search/site/docs/search/api.html
 */
export const cmr = defineUpstream({
  name: 'cmr',
  title: 'NASA Common Metadata Repository',
  baseUrl: 'https://cmr.earthdata.nasa.gov',
  licence: 'NASA open data, credit asked: NASA Earthdata (ESDIS)',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'NASA Earthdata (ESDIS)',
    url: 'https://www.earthdata.nasa.gov',
  },
  documentation: {
    at: 'https://github.com/nasa/Common-Metadata-Repository/blob/543a30f26e/search-app/docs/api.md',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 120,
  timeoutMs: 15_000,
  open: (http) => ({
    /** Granules that touch a box and a time, newest first, and how many there are in all. */
    granules(asked: GranuleSearch): Promise<Reply<{ hits: number; granules: Granule[] }>> {
      const query = new URLSearchParams();
      for (const name of asked.collections) query.append('short_name[]', name);
      if (asked.box !== null) {
        const { west, south, east, north } = asked.box;
        query.set('bounding_box', [west, south, east, north].join(','));
      }
      query.set('temporal', `${asked.first}T00:00:00Z,${asked.last}T23:59:59Z`);
      if (asked.platform !== null) query.set('platform', asked.platform);
      if (asked.maxCloudCoverPercent !== null) query.set('cloud_cover', `0,${asked.maxCloudCoverPercent}`);
      query.set('sort_key', '-start_date');
      query.set('page_size', String(asked.limit));
      return http.get({
        path: `/search/granules.umm_json?${query}`,
        headers: { 'client-id': 'farebox' },
        schema: found,
        freshMs: 600_000,
        staleMs: 3_600_000,
      });
    },
  }),
  probe: (api) =>
    api.granules({
      collections: ['GPM_3IMERGDF'],
      box: null,
      first: '2024-06-01',
      last: '2024-06-02',
      platform: null,
      maxCloudCoverPercent: null,
      limit: 1,
    }),
});
