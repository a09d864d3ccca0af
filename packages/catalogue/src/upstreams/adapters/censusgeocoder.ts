import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** The geocoder refuses longer addresses. */
export const GEOCODER_MAX_CHARACTERS = 100;

/** An address in the United States, and the census tract that holds it. */
export interface CensusAddress {
  /** As the Census Bureau writes it. */
  address: string;
  lat: number;
  lon: number;
  /** Null where the geocoder names no tract. */
  tract: CensusTract | null;
}

/** A census tract by its FIPS codes: two, three and six digits. */
export interface CensusTract {
  state: string;
  county: string;
  tract: string;
}

/**
 * Postal abbreviations of states by their FIPS codes. The abbreviation in an address is that of its post office, which
 * may be in the neighbouring state.
 */
export const STATE_LETTERS: ReadonlyMap<string, string> = new Map(
  '01:AL 02:AK 04:AZ 05:AR 06:CA 08:CO 09:CT 10:DE 11:DC 12:FL 13:GA 15:HI 16:ID 17:IL 18:IN 19:IA 20:KS 21:KY 22:LA 23:ME 24:MD 25:MA 26:MI 27:MN 28:MS 29:MO 30:MT 31:NE 32:NV 33:NH 34:NJ 35:NM 36:NY 37:NC 38:ND 39:OH 40:OK 41:OR 42:PA 44:RI 45:SC 46:SD 47:TN 48:TX 49:UT 50:VT 51:VA 53:WA 54:WV 55:WI 56:WY 72:PR'
    .split(' ')
    .map((each) => [each.slice(0, 2), each.slice(3)] as const),
);

const match = z
  .looseObject({
    matchedAddress: z.string().min(1),
    coordinates: z.looseObject({ x: z.number().min(-180).max(180), y: z.number().min(-90).max(90) }),
    geographies: z.looseObject({
      'Census Tracts': z
        .array(
          z.looseObject({
            STATE: z.string().regex(/^\d{2}$/),
            COUNTY: z.string().regex(/^\d{3}$/),
            TRACT: z.string().regex(/^\d{6}$/),
          }),
        )
        .optional(),
    }),
  })
  .transform((raw): CensusAddress => {
    const [tract] = raw.geographies['Census Tracts'] ?? [];
    return {
      address: raw.matchedAddress,
      lat: raw.coordinates.y,
      lon: raw.coordinates.x,
      tract: tract === undefined ? null : { state: tract.STATE, county: tract.COUNTY, tract: tract.TRACT },
    };
  });
const matches = z
  .looseObject({ result: z.looseObject({ addressMatches: z.array(match).max(200) }) })
  .transform(({ result }) => result.addressMatches);

const DAY_MS = 86_400_000;

/** Addresses of the United States and Puerto Rico. https://geocoding.geo.census.gov/geocoder/Geocoding_Services_API.html */
export const censusgeocoder = defineUpstream({
  name: 'censusgeocoder',
  title: 'Census Geocoder',
  baseUrl: 'https://geocoding.geo.census.gov/geocoder',
  licence: 'U.S. Census Bureau, public domain',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'U.S. Census Bureau',
    url: 'https://geocoding.geo.census.gov/geocoder',
  },
  key: 'none',
  requestsPerMinute: 60,
  open: (http) => ({
    /**
     * The possible meanings of an address in one line, in the geocoder's order; empty when it knows none.
     *
     * @param address at most `GEOCODER_MAX_CHARACTERS`
     */
    async addresses(address: string): Promise<Reply<CensusAddress[]>> {
      // It answers 400 to text that it cannot read as an address. That is a mistake of the caller, not a failure of the
      // geocoder.
      const reply = await http.find({
        path: '/geographies/onelineaddress',
        query: {
          address,
          benchmark: 'Public_AR_Current',
          vintage: 'Current_Current',
          layers: 'Census Tracts',
          format: 'json',
        },
        absentOn: [400],
        schema: matches,
        freshMs: 30 * DAY_MS,
        staleMs: 30 * DAY_MS,
      });
      return { ...reply, value: reply.value ?? [] };
    },
  }),
  probe: (api) => api.addresses('4600 Silver Hill Rd, Washington, DC 20233'),
});
