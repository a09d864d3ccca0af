/** The National Weather Service: a grid of stations over the United States, each observed every twenty minutes. */
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { World } from './world.ts';

const OBSERVED_EVERY_MS = 1_200_000;
const STEP_DEGREES = 0.4;
const NEAREST = 30;
/** The box, in degrees, that roughly holds the contiguous states. */
const COUNTRY = { south: 24.5, north: 49.4, west: -125, east: -66.9 };
const BASE = 'https://api.weather.gov';
/** The one office of the sandbox, and the size of a cell of its grid: about 2.5 km. */
const OFFICE = 'SBX';
const CELL_DEGREES = 0.025;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

interface Station {
  id: string;
  lat: number;
  lon: number;
}

const COLUMNS = Math.floor((COUNTRY.east - COUNTRY.west) / STEP_DEGREES);
const ROWS = Math.floor((COUNTRY.north - COUNTRY.south) / STEP_DEGREES);

/** The station at a row and a column, or null outside the grid. Its id has four letters and begins with K, as real ids do. */
function stationAt(row: number, column: number): Station | null {
  if (row < 0 || row >= ROWS || column < 0 || column >= COLUMNS) return null;
  const number = row * COLUMNS + column;
  const letters = [Math.floor(number / 676), Math.floor(number / 26) % 26, number % 26].map(
    (at) => LETTERS[at],
  );
  return {
    id: `K${letters.join('')}`,
    lat: Math.round((COUNTRY.south + row * STEP_DEGREES) * 1_000) / 1_000,
    lon: Math.round((COUNTRY.west + column * STEP_DEGREES) * 1_000) / 1_000,
  };
}

function stationNamed(id: string): Station | null {
  const [, a = '', b = '', c = ''] = /^K([A-Z])([A-Z])([A-Z])$/.exec(id) ?? [];
  if (a === '') return null;
  const number = LETTERS.indexOf(a) * 676 + LETTERS.indexOf(b) * 26 + LETTERS.indexOf(c);
  return stationAt(Math.floor(number / COLUMNS), number % COLUMNS);
}

function near(lat: number, lon: number): Station[] {
  const row = Math.round((lat - COUNTRY.south) / STEP_DEGREES);
  const column = Math.round((lon - COUNTRY.west) / STEP_DEGREES);
  const found: Station[] = [];
  for (let r = row - 3; r <= row + 3; r++)
    for (let c = column - 3; c <= column + 3; c++) {
      const station = stationAt(r, c);
      if (station !== null) found.push(station);
    }
  const away = (each: Station) =>
    (each.lat - lat) ** 2 + ((each.lon - lon) * Math.cos((lat * Math.PI) / 180)) ** 2;
  return found.sort((a, b) => away(a) - away(b)).slice(0, NEAREST);
}

const feature = ({ id, lat, lon }: Station, baseUrl: string) => ({
  id: `${baseUrl}/stations/${id}`,
  type: 'Feature',
  geometry: { type: 'Point', coordinates: [lon, lat] },
  properties: {
    '@id': `${baseUrl}/stations/${id}`,
    '@type': 'wx:ObservationStation',
    elevation: { unitCode: 'wmoUnit:m', value: 100 },
    stationIdentifier: id,
    name: `Sandbox station ${id}`,
    timeZone: 'America/New_York',
  },
});

export function nws(app: FastifyInstance, { seed, nowMs }: World): void {
  app.addHook('onRequest', async (request, reply) => {
    if ((request.headers['user-agent'] ?? '') === '')
      return refuse(reply, 403, 'Forbidden', 'A User-Agent is needed.');
  });

  app.get<{ Params: { place: string } }>('/points/:place', ({ params, url }, reply) => {
    const [, latText = '', lonText = ''] = /^(-?\d+(?:\.\d+)?),(-?\d+(?:\.\d+)?)$/.exec(params.place) ?? [];
    const [lat, lon] = [Number(latText), Number(lonText)];
    if (latText === '' || Math.abs(lat) > 90 || Math.abs(lon) > 180)
      return refuse(reply, 400, 'Invalid Parameter', `Parameter "point" is invalid: '${params.place}'`);
    const short = [lat, lon].map((each) => String(Math.round(each * 10_000) / 10_000));
    if (short.join(',') !== params.place)
      return reply
        .code(301)
        .header('location', url.replace(params.place, short.join(',')))
        .send();
    const { south, north, west, east } = COUNTRY;
    if (lat < south || lat > north || lon < west || lon > east)
      return refuse(
        reply,
        404,
        'Data Unavailable For Requested Point',
        'Unable to provide data for requested point',
      );
    const [gridX, gridY] = [lon - west, lat - south].map((from) => Math.floor(from / CELL_DEGREES));
    return reply.type('application/geo+json').send({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [lon, lat] },
      properties: {
        gridId: OFFICE,
        gridX,
        gridY,
        observationStations: `${BASE}/gridpoints/${OFFICE}/${gridX},${gridY}/stations`,
      },
    });
  });

  app.get<{ Params: { office: string; cell: string } }>(
    '/gridpoints/:office/:cell/stations',
    ({ params }, reply) => {
      const [, x = '', y = ''] = /^(\d+),(\d+)$/.exec(params.cell) ?? [];
      if (params.office !== OFFICE || x === '')
        return refuse(reply, 404, 'Not Found', `Unknown gridpoint '${params.office}/${params.cell}'`);
      const [lon, lat] = [COUNTRY.west, COUNTRY.south].map(
        (edge, at) => edge + (Number([x, y][at]) + 0.5) * CELL_DEGREES,
      );
      return reply.type('application/geo+json').send({
        type: 'FeatureCollection',
        features: near(lat ?? 0, lon ?? 0).map((station) => feature(station, BASE)),
      });
    },
  );

  app.get<{ Params: { id: string } }>('/stations/:id', ({ params }, reply) => {
    const station = stationNamed(params.id);
    if (station === null) return unknownStation(reply);
    return reply.type('application/geo+json').send(feature(station, BASE));
  });

  app.get<{ Params: { id: string } }>('/stations/:id/observations/latest', ({ params }, reply) => {
    const station = stationNamed(params.id);
    if (station === null) return unknownStation(reply);
    return reply.type('application/geo+json').send(observationOf(station, seed, nowMs()));
  });
}

/** The observation of a station at the end of the last full round of twenty minutes. */
function observationOf(station: Station, seed: number, nowMs: number) {
  const round = Math.floor(nowMs / OBSERVED_EVERY_MS);
  const chance = (what: string) =>
    createHash('sha256').update(`${seed}:${station.id}:${round}:${what}`).digest().readUInt32BE(0) /
    0xffffffff;
  // Some instruments report nothing for a round, as happens at real stations.
  const value = (unit: string, given: number) => {
    const isThere = chance(`${unit} there`) > 0.03;
    const measured = isThere ? Math.round(given * 100) / 100 : null;
    return { unitCode: `wmoUnit:${unit}`, value: measured, qualityControl: isThere ? 'V' : 'Z' };
  };
  const temperature = 30 - (station.lat - 25) + 6 * chance('t') - 3;
  const at = new Date(round * OBSERVED_EVERY_MS).toISOString().replace('.000Z', '+00:00');
  return {
    id: `${BASE}/stations/${station.id}/observations/${at}`,
    type: 'Feature',
    geometry: { type: 'Point', coordinates: [station.lon, station.lat] },
    properties: {
      '@type': 'wx:ObservationStation',
      elevation: { unitCode: 'wmoUnit:m', value: 100 },
      station: `${BASE}/stations/${station.id}`,
      timestamp: at,
      rawMessage: '',
      textDescription: chance('sky') > 0.5 ? 'Clear' : 'Cloudy',
      temperature: { ...value('degC', temperature) },
      dewpoint: value('degC', temperature - 5),
      windDirection: value('degree_(angle)', Math.floor(chance('d') * 36) * 10),
      windSpeed: value('km_h-1', 30 * chance('w')),
      windGust: { unitCode: 'wmoUnit:km_h-1', value: null, qualityControl: 'Z' },
      barometricPressure: value('Pa', 101_000 + 1_000 * chance('p')),
      visibility: value('m', 16_090),
      relativeHumidity: value('percent', 40 + 50 * chance('h')),
      precipitationLastHour: value('mm', chance('r') > 0.8 ? 2 : 0),
    },
  };
}

function unknownStation(reply: FastifyReply) {
  return refuse(reply, 404, 'Not Found', 'Station not found');
}

/** An error in the form of RFC 9457, with the fields that the National Weather Service adds. */
function refuse(reply: FastifyReply, status: number, title: string, detail: string) {
  return reply
    .code(status)
    .type('application/problem+json')
    .send({
      correlationId: 'sandbox',
      title,
      type: `https://api.weather.gov/problems/${title.replaceAll(' ', '')}`,
      status,
      detail,
      instance: 'https://api.weather.gov/requests/sandbox',
    });
}
