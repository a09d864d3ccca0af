/** The Census Geocoder: each city that it knows is one tract, whatever the street. Addresses elsewhere have no match. */
import type { FastifyInstance } from 'fastify';
import { TRACTS, type Tract } from './homes.ts';
import { keyOf, uniform } from './noise.ts';
import { type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const MAX_CHARACTERS = 100;

export function censusgeocoder(app: FastifyInstance, { seed }: World): void {
  app.get<{ Querystring: Query }>('/geographies/onelineaddress', ({ query }, reply) => {
    const refuse = (message: string) => reply.code(400).send({ errors: [message], status: '400' });
    const [benchmark, vintage] = [textOf(query, 'benchmark'), textOf(query, 'vintage')];
    if (benchmark === undefined || vintage === undefined) return refuse('Specify a benchmark and a vintage');
    const address = textOf(query, 'address')?.trim() ?? '';
    if (address === '' || address.length > MAX_CHARACTERS)
      return refuse('Address cannot be empty and cannot exceed 100 characters');
    return {
      result: {
        input: {
          address: { address },
          benchmark: { isDefault: true, id: '4', benchmarkName: benchmark },
          vintage: { isDefault: true, id: '4', vintageName: vintage },
        },
        addressMatches: matchesOf(seed, address),
      },
    };
  });
}

/** The matches of an address. It must hold a house number and a street, then the city and its state, or the ZIP code. */
function matchesOf(seed: number, address: string) {
  const upper = address.toUpperCase().replace(/[\s,]+/g, ' ');
  const [, number, street] = /^(\d+[A-Z]?) ([A-Z0-9].*)$/.exec(upper) ?? [];
  if (number === undefined || street === undefined) return [];
  return TRACTS.flatMap((tract) => {
    const named = new RegExp(
      `^(.+?)(?: ${tract.city.toUpperCase()} ${tract.postal}(?: \\d{5}(?:-\\d{4})?)?| (?:.* )?${tract.zip}(?:-\\d{4})?)$`,
    ).exec(street);
    return named?.[1] === undefined ? [] : [matchIn(seed, tract, number, named[1])];
  });
}

function matchIn(seed: number, tract: Tract, number: string, streetName: string) {
  const { city, postal, state, county, zip } = tract;
  const place = keyOf(seed, `${number} ${streetName}`);
  const away = (axis: number) => Math.round((uniform(place, axis) - 0.5) * 2e4) / 1e6;
  return {
    tigerLine: { side: 'L', tigerLineId: '0' },
    geographies: {
      'Census Tracts': [
        {
          GEOID: `${state}${county}${tract.tract}`,
          STATE: state,
          COUNTY: county,
          TRACT: tract.tract,
          NAME: `Census Tract ${Number(tract.tract) / 100}`,
        },
      ],
    },
    coordinates: { x: tract.lon + away(0), y: tract.lat + away(1) },
    addressComponents: { zip, streetName, city: city.toUpperCase(), state: postal, fromAddress: number },
    matchedAddress: `${number} ${streetName}, ${city.toUpperCase()}, ${postal}, ${zip}`,
  };
}
