/**
 * What satellites and models say of forty places, held against the sandbox's own fields: answers differ by place because
 * the source's values do, and stand in the cell that they say they stand in.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { runContext } from '../../../../packages/catalogue/src/services/run-context.fixture.ts';
import { distanceKm } from '../../../../packages/catalogue/src/services/shared/earth/great-circle.ts';
import {
  type ConnectedUpstreams,
  connectUpstreams,
  UPSTREAM_NAMES,
} from '../../../../packages/catalogue/src/upstreams/index.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import { ServiceFailure } from '../../../../packages/core/src/words/failure.ts';
import { fireIn } from '../../../../packages/sandbox/src/upstreams/firms.ts';
import { isLand } from '../../../../packages/sandbox/src/upstreams/land.ts';
import { greenness } from '../../../../packages/sandbox/src/upstreams/modis.ts';
import { fineDust } from '../../../../packages/sandbox/src/upstreams/openmeteoair.ts';
import { riverM3s } from '../../../../packages/sandbox/src/upstreams/openmeteoflood.ts';
import { rainMm, soilWetness } from '../../../../packages/sandbox/src/upstreams/rain-and-soil.ts';
import { SANDBOX_KEYS } from '../../../../packages/sandbox/src/upstreams/server.ts';
import { PLACES } from '../places.fixture.ts';
import { startUpstreams, UPSTREAM_SEED } from '../server.fixture.ts';

const DAY_MS = 86_400_000;
/** Noon of a day; every request comes some seconds after the one before, as the sources allow them. */
const START_MS = Date.parse('2026-11-21T12:00:00Z');

let nowMs = START_MS;
let sandbox: Awaited<ReturnType<typeof startUpstreams>>;
let upstreams: ConnectedUpstreams;
let services: Map<string, Service>;
before(async () => {
  sandbox = await startUpstreams(() => START_MS);
  const configs = UPSTREAM_NAMES.map((name) => [
    name,
    { baseUrl: `${sandbox.url}/${name}`, apiKey: SANDBOX_KEYS[`UPSTREAM_${name.toUpperCase()}_API_KEY`] },
  ]);
  upstreams = connectUpstreams(Object.fromEntries(configs), {
    userAgent: 'test',
    acceptSandbox: true,
    nowMs: () => nowMs,
  });
  services = new Map((await loadServices()).map((service) => [service.path, service]));
});
after(async () => {
  await upstreams?.close();
  await sandbox?.stop();
});

/** The answer's data; the code of a refusal that costs nothing. */
async function ask(path: string, body: Record<string, unknown>): Promise<Record<string, unknown> | string> {
  nowMs += 6_000;
  const service = services.get(path);
  assert.ok(service, path);
  try {
    const { fields } = await service.run(service.input.parse(body), {
      ...runContext({}),
      upstreams: upstreams.apis,
      nowMs: () => nowMs,
    });
    const { data } = service.output.parse(fields) as { data: Record<string, unknown> };
    return data;
  } catch (error) {
    if (error instanceof ServiceFailure && (error.status === 422 || error.status === 404)) return error.code;
    throw error;
  }
}

/** Asks in all places; what comes back is either data or a code. */
async function everywhere(path: string, body: Record<string, unknown> = {}) {
  const answers: {
    name: string;
    lat: number;
    lon: number;
    data: Record<string, unknown> | null;
    code: string | null;
  }[] = [];
  for (const [name, lat, lon] of PLACES) {
    const answer = await ask(path, { ...body, lat, lon });
    answers.push({
      name,
      lat,
      lon,
      data: typeof answer === 'string' ? null : answer,
      code: typeof answer === 'string' ? answer : null,
    });
  }
  return answers;
}

const dayNumber = (day: unknown) => Date.parse(`${String(day)}T00:00:00Z`) / DAY_MS;

test('there are forty places', () => assert.equal(PLACES.length, 40));

test('precipitation: of every place its own cell’s, on land and sea', async () => {
  const answers = await everywhere('earthdata-precipitation', { date: '2026-11-10' });
  for (const { name, data } of answers) {
    assert.ok(data !== null, name);
    const expected = rainMm(
      UPSTREAM_SEED,
      dayNumber(data.observedAt),
      Number(data.gridLat),
      Number(data.gridLon),
    );
    assert.equal(data.precipitationMm24hr, expected, name);
    assert.ok(Number(data.distanceKm) < 45, name);
  }
  const rain = answers.map(({ data }) => data?.precipitationMm24hr).filter((value) => value !== 0);
  assert.ok(rain.length > 10 && new Set(rain).size > rain.length * 0.9, `${rain}`);
});

test('soil moisture: of land alone, fractions and volume by two fields', async () => {
  for (const { name, data, code } of await everywhere('earthdata-soil-moisture')) {
    if (data === null) {
      assert.equal(code, 'NOT_LAND', name);
      continue;
    }
    const day = dayNumber(data.observedAt);
    const expected = soilWetness(UPSTREAM_SEED, day, Number(data.gridLat), Number(data.gridLon));
    assert.deepEqual(
      [data.surfaceWetnessFraction, data.rootZoneWetnessFraction, data.profileWetnessFraction],
      [expected?.top, expected?.root, expected?.profile],
      name,
    );
    assert.ok(data.soilMoistureM3M3 === null || Number(data.soilMoistureM3M3) < 0.47, name);
  }
});

test('ocean color: of the sea alone, the nearest clear cell’s by the source itself', async () => {
  const answers = await everywhere('earthdata-ocean-color');
  let measured = 0;
  for (const { name, lat, lon, data, code } of answers) {
    if (data === null) {
      assert.ok(
        code === 'CLOUDS' || code === 'OUT_OF_RANGE' || (code === 'NOT_SEA' && isLand(lat, lon)),
        `${name}: ${code}`,
      );
      continue;
    }
    assert.ok(!isLand(Number(data.gridLat), Number(data.gridLon)), name);
    const query = `chlor_a[(${data.observedAt})][(${data.gridLat})][(${data.gridLon})]`;
    const direct = await fetch(
      `${sandbox.url}/erddap/griddap/nesdisVHNchlaDaily.json?${encodeURIComponent(query)}`,
    );
    const { table } = (await direct.json()) as { table: { rows: unknown[][] } };
    assert.equal(table.rows[0]?.[3], data.chlorophyllMgM3, name);
    assert.ok(Number(data.distanceKm) < 32, name);
    measured++;
  }
  assert.ok(measured >= 6, `${measured} measured`);
});

test('vegetation: the pixel’s own greenness, and none at sea', async () => {
  let green = 0;
  for (const { name, lat, lon, data, code } of await everywhere('vegetation')) {
    if (data === null) {
      assert.ok(code === 'NOT_LAND' && !isLand(lat, lon), `${name}: ${code}`);
      continue;
    }
    const expected = greenness(
      UPSTREAM_SEED,
      dayNumber(data.compositeDate),
      Number(data.pixelLat),
      Number(data.pixelLon),
    );
    // The middle of a pixel is told to a millionth of a degree, which the field may tell apart.
    assert.ok(Math.abs(Number(data.ndvi) - expected) < 0.2, `${name}: ${data.ndvi} ${expected}`);
    assert.ok(Number(data.distanceKm) < 0.3, name);
    green++;
  }
  assert.ok(green >= 25, `${green} places`);
});

test('land use: shares that add up, and the class at the point', async () => {
  const dominant = new Set<unknown>();
  for (const { name, data, code } of await everywhere('land-use')) {
    if (data === null) {
      assert.equal(code, 'NOT_LAND', name);
      continue;
    }
    const shares = Object.values(data.classes as Record<string, number>);
    assert.ok(Math.abs(shares.reduce((sum, one) => sum + one, 0) - 100) < 0.1, name);
    dominant.add(data.dominantType);
  }
  assert.ok(dominant.size >= 4, `${[...dominant]}`);
});

test('floods: the discharge of the river’s own cell', async () => {
  for (const { name, lat, lon, data, code } of await everywhere('flood-detection')) {
    if (data === null) {
      assert.ok(code === 'NO_RIVER' && !isLand(lat, lon), `${name}: ${code}`);
      continue;
    }
    const expected = riverM3s(
      UPSTREAM_SEED,
      dayNumber(data.observedAt),
      Number(data.gridLat),
      Number(data.gridLon),
    );
    assert.equal(data.riverDischargeM3s, expected, name);
    const { years2, years5, years20 } = data.returnLevelsM3s as Record<string, number>;
    assert.ok(Number(years2) < Number(years5) && Number(years5) < Number(years20), name);
  }
});

test('the air: everywhere its own', async () => {
  const dust = new Set<unknown>();
  for (const { name, data } of await everywhere('air-quality')) {
    assert.ok(data !== null, name);
    const hour = Date.parse(String(data.observedAt)) / 3_600_000;
    assert.equal(data.pm25, fineDust(UPSTREAM_SEED, hour, Number(data.gridLat), Number(data.gridLon)), name);
    dust.add(data.pm25);
  }
  assert.ok(dust.size > 25, `${dust.size} values`);
});

test('fires: those of the sandbox within the radius, and no others', async () => {
  let burning = 0;
  for (const { name, lat, lon, data } of await everywhere('fire-alerts', {
    days: 3,
    radiusKm: 300,
    limit: 500,
  })) {
    assert.ok(data !== null, name);
    const expected = new Set<string>();
    for (let day = Math.floor(START_MS / DAY_MS) - 4; day <= START_MS / DAY_MS; day++) {
      for (let row = Math.max(-90, Math.floor(lat) - 4); row <= Math.min(89, lat + 4); row++) {
        for (let column = -180; column < 180; column++) {
          const fire = fireIn(UPSTREAM_SEED, day, row, column);
          const atMs = fire === null ? 0 : day * DAY_MS + fire.minute * 60_000;
          if (fire === null || atMs > START_MS || atMs < Date.parse(String(data.from))) continue;
          if (distanceKm({ lat, lon }, { lat: fire.latitude, lon: fire.longitude }) <= 300)
            expected.add(`${fire.latitude} ${fire.longitude} ${fire.minute}`);
        }
      }
    }
    assert.equal(data.count, expected.size, name);
    burning += expected.size;
  }
  assert.ok(burning > 30, `${burning} fires`);
});
