/**
 * ERDDAP's griddap as CoastWatch serves it. A query states its ranges in brackets, a value means the nearest grid point, and
 * places where nothing is measured answer null.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { patches } from './globe.ts';
import { isLand } from './land.ts';
import { keyOf } from './noise.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const MAX_ROWS = 50_000;

interface Variable {
  name: string;
  type: string;
  units: string;
  longName: string;
  /** The value at a time and place; null where nothing is measured. */
  valueAt(timeMs: number, latitude: number, longitude: number): number | null;
}

interface Dataset {
  id: string;
  title: string;
  firstMs: number;
  /** The hour of the day (UTC) for which a day's values are valid. */
  hourUtc: number;
  /** The time from that hour until the day's values are published. */
  lagMs: number;
  latitude: Axis;
  longitude: Axis;
  variables: readonly Variable[];
}

/** An axis of evenly spaced points. `first` and `step` are in degrees; `step` is below zero if the axis runs southward. */
interface Axis {
  first: number;
  step: number;
  count: number;
}

class QueryError extends Error {
  readonly code: 400 | 404 | 413;
  constructor(code: 400 | 404 | 413, message: string) {
    super(message);
    this.code = code;
  }
}

export function erddap(app: FastifyInstance, { seed, nowMs }: World): void {
  const datasets = new Map([seaSurface(seed), oceanColor(seed)].map((dataset) => [dataset.id, dataset]));

  function lastDay(dataset: Dataset): number {
    return Math.floor((nowMs() - dataset.lagMs - dataset.hourUtc * 3_600_000) / DAY_MS);
  }

  function timeOfDay(dataset: Dataset, day: number): number {
    return day * DAY_MS + dataset.hourUtc * 3_600_000;
  }

  /** Reads `variable[...][...][...],variable[...]...`. The ranges of the last variable that states any hold for all. */
  function parse(dataset: Dataset, query: string) {
    const parts = query.split(/,(?![^[]*\])/);
    let bounds: string[] = [];
    const variables = parts.map((part) => {
      const name = /^[A-Za-z_]\w*/.exec(part)?.[0] ?? '';
      const variable = dataset.variables.find((one) => one.name === name);
      if (variable === undefined) throw new QueryError(400, `Query error: Unrecognized variable="${name}".`);
      const given = [...part.slice(name.length).matchAll(/\[([^\]]*)\]/g)].map(([, inner]) => inner ?? '');
      if (given.length > 0) bounds = given;
      return variable;
    });
    if (bounds.length !== 3) {
      throw new QueryError(
        400,
        `Query error: 3 constraints are needed for ${variables[0]?.name}, not ${bounds.length}.`,
      );
    }
    const [time, latitude, longitude] = bounds;
    const firstDay = Math.floor(dataset.firstMs / DAY_MS);
    const days = picked(time ?? '', 'time', {
      count: lastDay(dataset) - firstDay + 1,
      indexOf(text) {
        const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text);
        return (ms - timeOfDay(dataset, firstDay)) / DAY_MS;
      },
      show: (index) => isoTime(timeOfDay(dataset, firstDay + index)),
    });
    const degrees = (text: string, name: string, axis: Axis) =>
      picked(text, name, {
        count: axis.count,
        indexOf: (value) => (Number(value) - axis.first) / axis.step,
        show: (index) => String(at(axis, index)),
      });
    const latitudes = degrees(latitude ?? '', 'latitude', dataset.latitude);
    const longitudes = degrees(longitude ?? '', 'longitude', dataset.longitude);
    if (days.length * latitudes.length * longitudes.length > MAX_ROWS) {
      throw new QueryError(
        413,
        'Payload Too Large: Your query produced too much data. Try to request less data.',
      );
    }
    return { variables, days: days.map((index) => firstDay + index), latitudes, longitudes };
  }

  app.get<{ Params: { file: string } }>('/griddap/:file', ({ params, raw }, reply) => {
    const [, id, type] = /^(.+)\.(\w+)$/.exec(params.file) ?? [];
    const dataset = datasets.get(id ?? '');
    if (dataset === undefined)
      return refuse(reply, 404, `Not Found: Currently unknown datasetID=${id ?? params.file}`);
    if (type !== 'json')
      return refuse(reply, 400, `Bad Request: Query error: fileType=.${type} is not served here.`);
    try {
      const { variables, days, latitudes, longitudes } = parse(dataset, rawQuery(raw.url ?? ''));
      const rows: (string | number | null)[][] = [];
      for (const day of days) {
        const timeMs = timeOfDay(dataset, day);
        for (const latIndex of latitudes) {
          for (const lonIndex of longitudes) {
            const latitude = at(dataset.latitude, latIndex);
            const longitude = at(dataset.longitude, lonIndex);
            rows.push([
              isoTime(timeMs),
              latitude,
              longitude,
              ...variables.map((variable) => variable.valueAt(timeMs, latitude, longitude)),
            ]);
          }
        }
      }
      return {
        table: {
          columnNames: ['time', 'latitude', 'longitude', ...variables.map(({ name }) => name)],
          columnTypes: ['String', 'double', 'double', ...variables.map(({ type: kind }) => kind)],
          columnUnits: ['UTC', 'degrees_north', 'degrees_east', ...variables.map(({ units }) => units)],
          rows,
        },
      };
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      const prefix =
        error.code === 404
          ? 'Not Found: Your query produced no matching results. '
          : error.code === 400
            ? 'Bad Request: '
            : '';
      return refuse(reply, error.code, prefix + error.message);
    }
  });

  app.get<{ Params: { dataset: string } }>('/info/:dataset/index.json', ({ params }, reply) => {
    const dataset = datasets.get(params.dataset);
    if (dataset === undefined)
      return refuse(reply, 404, `Not Found: Currently unknown datasetID=${params.dataset}`);
    const first = timeOfDay(dataset, Math.floor(dataset.firstMs / DAY_MS));
    const last = timeOfDay(dataset, lastDay(dataset));
    const axes = axesOf(dataset, first, last);
    return {
      table: {
        columnNames: ['Row Type', 'Variable Name', 'Attribute Name', 'Data Type', 'Value'],
        columnTypes: ['String', 'String', 'String', 'String', 'String'],
        rows: [
          ['attribute', 'NC_GLOBAL', 'cdm_data_type', 'String', 'Grid'],
          ['attribute', 'NC_GLOBAL', 'title', 'String', dataset.title],
          ['attribute', 'NC_GLOBAL', 'time_coverage_start', 'String', isoTime(first)],
          ['attribute', 'NC_GLOBAL', 'time_coverage_end', 'String', isoTime(last)],
          ...axes.flatMap(([name, count, spacing, bounds]) => [
            [
              'dimension',
              name,
              '',
              'double',
              `nValues=${count}, evenlySpaced=true, averageSpacing=${spacing}`,
            ],
            ['attribute', name, 'actual_range', 'double', bounds],
          ]),
          ...dataset.variables.flatMap(({ name, type, units, longName }) => [
            ['variable', name, '', type, 'time, latitude, longitude'],
            ['attribute', name, 'long_name', 'String', longName],
            ['attribute', name, 'units', 'String', units],
          ]),
        ],
      },
    };
  });
}

/** The axes as the description of a dataset states them. */
function axesOf(
  { latitude, longitude }: Dataset,
  firstMs: number,
  lastMs: number,
): [name: string, count: number, spacing: string, range: string][] {
  const range = (axis: Axis) => [at(axis, 0), at(axis, axis.count - 1)].sort((a, b) => a - b).join(', ');
  return [
    ['time', Math.round((lastMs - firstMs) / DAY_MS) + 1, '1 day', `${firstMs / 1000}, ${lastMs / 1000}`],
    ['latitude', latitude.count, String(latitude.step), range(latitude)],
    ['longitude', longitude.count, String(longitude.step), range(longitude)],
  ];
}

/** An axis for reading a constraint, which names its points by index or by value. */
interface Scale {
  count: number;
  /** The index of a value, with a fraction if it lies between two points; NaN if the text is no value. */
  indexOf(text: string): number;
  show(index: number): string;
}

/**
 * The indexes that a constraint picks: `start`, `start:stop` or `start:stride:stop`. Start and stop are values if they stand in
 * parentheses, indexes otherwise.
 */
function picked(constraint: string, name: string, scale: Scale): number[] {
  const parts = [...constraint.matchAll(/\([^)]*\)|[^:]+/g)].map(([part]) => part.trim());
  const [start, second, third] = parts;
  if (start === undefined || parts.length > 3) {
    throw new QueryError(
      400,
      `Query error: For axis ${name}, the constraint "[${constraint}]" is not valid.`,
    );
  }
  const from = indexFrom(start, name, scale);
  const to = third ?? second;
  const until = to === undefined ? from : indexFrom(to, name, scale);
  const stride = third === undefined ? 1 : Number(second);
  if (!Number.isInteger(stride) || stride < 1 || until < from) {
    throw new QueryError(
      400,
      `Query error: For axis ${name}, the constraint "[${constraint}]" is not valid.`,
    );
  }
  const count = Math.floor((until - from) / stride) + 1;
  if (count > MAX_ROWS) throw new QueryError(413, 'Payload Too Large: Your query produced too much data.');
  return Array.from({ length: count }, (_, index) => from + index * stride);
}

function indexFrom(text: string, name: string, scale: Scale): number {
  const value = /^\((.*)\)$/.exec(text)?.[1]?.trim();
  const last = /^last(?:-(\d+))?$/.exec(value ?? text);
  if (last !== null) return scale.count - 1 - Number(last[1] ?? 0);
  const index = value === undefined ? Number(text) : scale.indexOf(value);
  if (Number.isNaN(index)) {
    throw new QueryError(400, `Query error: For axis ${name}, "${text}" is not a valid value.`);
  }
  // A value may lie up to half a step outside the axis: its nearest point is then the outermost one.
  const edge = value === undefined ? 0 : 0.5;
  if (index < -edge || index > scale.count - 1 + edge) {
    const [side, bound] =
      index < 0
        ? ['less than the axis minimum', scale.show(0)]
        : ['greater than the axis maximum', scale.show(scale.count - 1)];
    throw new QueryError(404, `Query error: For axis ${name}, "${text}" is ${side}=${bound}.`);
  }
  return Math.max(0, Math.min(scale.count - 1, Math.round(index)));
}

function at({ first, step }: Axis, index: number): number {
  return Math.round((first + step * index) * 1e6) / 1e6;
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}

/** The query string of a URL without percent-encoding, whether or not the client encoded it. */
function rawQuery(url: string): string {
  const mark = url.indexOf('?');
  const query = mark < 0 ? '' : url.slice(mark + 1);
  try {
    return decodeURIComponent(query);
  } catch {
    throw new QueryError(400, 'Query error: the query is not properly percent-encoded.');
  }
}

function refuse(reply: FastifyReply, code: number, message: string) {
  return reply
    .code(code)
    .type('text/plain; charset=utf-8')
    .send(`Error {\n    code=${code};\n    message="${message.replace(/"/g, '\\"')}";\n}\n`);
}

/**
 * The temperature of the sea's surface in degrees Celsius: warm at the equator, with seasons, with currents that stay in place
 * and with eddies that change every five days.
 */
export function seaCelsius(seed: number, timeMs: number, latitude: number, longitude: number): number {
  const yearShare = (timeMs / DAY_MS / 365.25) % 1;
  const summer = Math.cos(2 * Math.PI * (yearShare - (latitude >= 0 ? 0.64 : 0.14)));
  const mean = 28.5 - 30.5 * Math.sin((latitude * Math.PI) / 180) ** 2;
  const season = 3.5 * Math.abs(Math.sin((2 * latitude * Math.PI) / 180)) * summer;
  const day = keyOf(seed, `sst:${Math.floor(timeMs / DAY_MS / 5)}`);
  return (
    mean +
    season +
    0.9 * patches(keyOf(seed, 'sst-currents'), latitude, longitude, 6) +
    0.25 * patches(day, latitude, longitude, 1.5)
  );
}

function seaSurface(seed: number): Dataset {
  const celsius = (timeMs: number, latitude: number, longitude: number) =>
    seaCelsius(seed, timeMs, latitude, longitude);
  const onSea =
    (read: (timeMs: number, latitude: number, longitude: number) => number) =>
    (timeMs: number, latitude: number, longitude: number) =>
      isLand(latitude, longitude) ? null : Math.round(read(timeMs, latitude, longitude) * 1000) / 1000;
  const iceShare = (temperature: number) => Math.max(0, Math.min(1, (-0.8 - temperature) / 1.5));
  return {
    id: 'jplMURSST41',
    title:
      'Multi-scale Ultra-high Resolution (MUR) SST Analysis fv04.1, Global, 0.01 degree, Daily (SANDBOX)',
    firstMs: Date.UTC(2002, 5, 1),
    hourUtc: 9,
    lagMs: 27 * 3_600_000,
    latitude: { first: -89.99, step: 0.01, count: 17_999 },
    longitude: { first: -179.99, step: 0.01, count: 36_000 },
    variables: [
      {
        name: 'analysed_sst',
        type: 'double',
        units: 'degree_C',
        longName: 'Analysed Sea Surface Temperature',
        valueAt: onSea((...place) => Math.max(-1.8, celsius(...place))),
      },
      {
        name: 'analysis_error',
        type: 'double',
        units: 'degree_C',
        longName: 'Estimated Error Standard Deviation of analysed_sst',
        valueAt: onSea((_, latitude) => 0.36 + 0.1 * Math.abs(latitude / 90)),
      },
      {
        name: 'sea_ice_fraction',
        type: 'double',
        units: '1',
        longName: 'Sea Ice Area Fraction',
        valueAt: onSea((...place) => iceShare(celsius(...place))),
      },
      {
        name: 'mask',
        type: 'byte',
        units: '',
        longName: 'Sea/Land Field Composite Mask',
        valueAt: (_, latitude, longitude) => (isLand(latitude, longitude) ? 2 : 1),
      },
    ],
  };
}

/** Chlorophyll: much near the poles and the equator, little in the gyres, and hidden by clouds for about half of the time. */
function oceanColor(seed: number): Dataset {
  const waters = keyOf(seed, 'chlorophyll');
  return {
    id: 'nesdisVHNchlaDaily',
    title: 'Chlorophyll, VIIRS, Global, 4 km, Level 3, Daily (SANDBOX)',
    firstMs: Date.UTC(2012, 0, 2),
    hourUtc: 12,
    lagMs: 3 * DAY_MS,
    latitude: { first: 89.75625, step: -0.0375, count: 4_788 },
    longitude: { first: -179.98125, step: 0.0375, count: 9_600 },
    variables: [
      {
        name: 'chlor_a',
        type: 'float',
        units: 'mg m^-3',
        longName: 'Chlorophyll Concentration, OCI Algorithm',
        valueAt(timeMs, latitude, longitude) {
          const clouds = keyOf(seed, `clouds:${Math.floor(timeMs / DAY_MS)}`);
          if (isLand(latitude, longitude) || patches(clouds, latitude, longitude, 0.4) > 0.05) return null;
          const gyre = Math.exp(-(((Math.abs(latitude) - 24) / 14) ** 2));
          const power = -0.55 - 0.8 * gyre + 0.35 * patches(waters, latitude, longitude, 3);
          return Math.round(10 ** power * 10_000) / 10_000;
        },
      },
    ],
  };
}
