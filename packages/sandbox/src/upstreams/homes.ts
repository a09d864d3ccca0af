/** The census tracts of the sandbox's world. Cities, states and counties are real; tract codes and home values are invented. */
import { gaussian, keyOf, uniform } from './noise.ts';

export interface Tract {
  city: string;
  /** The two letters of the state in postal addresses. */
  postal: string;
  /** FIPS codes of the state, the county and the tract. */
  state: string;
  county: string;
  tract: string;
  zip: string;
  /** The middle of the tract, in degrees. */
  lat: number;
  lon: number;
}

const CITIES: readonly (readonly [
  city: string,
  postal: string,
  state: string,
  county: string,
  zip: string,
  lat: number,
  lon: number,
])[] = [
  ['Washington', 'DC', '11', '001', '20233', 38.9, -77.03],
  ['Atlanta', 'GA', '13', '121', '30303', 33.75, -84.39],
  ['Austin', 'TX', '48', '453', '78701', 30.27, -97.74],
  ['Houston', 'TX', '48', '201', '77002', 29.76, -95.37],
  ['Boston', 'MA', '25', '025', '02108', 42.36, -71.06],
  ['Chicago', 'IL', '17', '031', '60602', 41.88, -87.63],
  ['Springfield', 'IL', '17', '167', '62701', 39.8, -89.65],
  ['Denver', 'CO', '08', '031', '80202', 39.74, -104.99],
  ['Des Moines', 'IA', '19', '153', '50309', 41.59, -93.62],
  ['Miami', 'FL', '12', '086', '33130', 25.77, -80.19],
  ['Minneapolis', 'MN', '27', '053', '55401', 44.98, -93.27],
  ['Nashville', 'TN', '47', '037', '37203', 36.16, -86.78],
  ['New York', 'NY', '36', '061', '10007', 40.71, -74.01],
  ['Philadelphia', 'PA', '42', '101', '19107', 39.95, -75.16],
  ['Phoenix', 'AZ', '04', '013', '85003', 33.45, -112.07],
  ['Portland', 'OR', '41', '051', '97204', 45.52, -122.68],
  ['Salt Lake City', 'UT', '49', '035', '84101', 40.76, -111.89],
  ['San Francisco', 'CA', '06', '075', '94102', 37.77, -122.42],
  ['Seattle', 'WA', '53', '033', '98104', 47.61, -122.33],
  ['San Juan', 'PR', '72', '127', '00901', 18.47, -66.11],
];

export const TRACTS: readonly Tract[] = CITIES.map(([city, postal, state, county, zip, lat, lon], at) => ({
  city,
  postal,
  state,
  county,
  zip,
  lat,
  lon,
  tract: String(990_001 + at),
}));

/** The value of homes in a tract by the survey of a year: the median and its margin of error, in USD. */
export function homeValue(seed: number, { tract }: Tract, year: number): { median: number; margin: number } {
  const key = keyOf(seed, `homes:${tract}`);
  const median = 310_000 * Math.exp(0.5 * gaussian(key, 0)) * 1.05 ** (year - 2023);
  const margin = median * (0.04 + 0.1 * uniform(key, 1));
  return { median: Math.round(median / 100) * 100, margin: Math.round(margin) };
}
