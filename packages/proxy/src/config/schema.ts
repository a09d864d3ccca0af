/**
 * The one schema of `farebox.config.yaml`, of its JSON form and of `defineConfig`. Editors get it as JSON Schema
 * (`farebox.config.schema.json`). What no schema can say, such as that a route's upstream exists, `check.ts` adds.
 */
import { z } from 'zod';
import { MOST_KEY_CHARACTERS } from './route-key.ts';

/** A reference to an environment variable, as it is written. */
const TOKEN = ['$', '{WEATHER_TOKEN}'].join('');

const MOST_ROUTES = 5_000;
const MOST_UPSTREAMS = 200;
const MOST_PLANS = 100;
/** Free calls are counted one by one. */
const MOST_FREE_A_DAY = 1_000;
/** Accounts with a lower number are the house's. */
const FIRST_CUSTOMER = 1_000;
const MOST_GATES = 100;
/** The largest answer that the database keeps for a repeat. */
export const MOST_KEPT_BYTES = 1_400_000;
/** Callers over HTTP wait no longer for an answer in one piece. */
export const LONGEST_KEPT_MS = 25_000;
/** The largest body that a route may take. */
export const MOST_REQUEST_BYTES = 16_777_216;
const LONGEST_PAUSE_MS = 300_000;
const LONGEST_STREAM_MS = 3_600_000;

/** An object with names of its own, as many as are useful. */
function named<Key extends z.ZodString, Value extends z.ZodType>(key: Key, value: Value, most: number) {
  return z
    .record(key, value)
    .refine((record) => Object.keys(record).length <= most, `has more than ${most} entries`)
    .meta({ maxProperties: most });
}

const whole = (least: number, most: number) => z.int().min(least).max(most);

const money = z
  .string()
  .regex(
    /^(0|[1-9]\d{0,5})(\.\d{1,6})?$/,
    'write an amount in USD in quotes with at most six decimals, such as "0.02"',
  );

const word = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'write lower-case letters, digits and dashes, at most 40');

const headerName = z
  .string()
  .max(100)
  .regex(/^[a-z0-9!#$%&'*+.^_`|~-]+$/, 'write the name of a header in lower case');

/** Text in which a header or a parameter can be sent. */
const plainValue = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[\x20-\x7e]*$/, 'write printable ASCII characters only');

const credential = z
  .string()
  .max(200)
  .regex(
    /^([A-Za-z][A-Za-z0-9-]{0,31} )?\$\{[A-Za-z_][A-Za-z0-9_]{0,99}\}$/,
    `write the environment variable that holds the secret, such as "${TOKEN}" or "Bearer ${TOKEN}"; a secret never stands in this file`,
  );

const jsonPath = z
  .string()
  .max(300)
  .regex(
    /^[A-Za-z0-9_$@-]{1,64}(\.[A-Za-z0-9_$@-]{1,64}){0,7}$/,
    'write the names of a field from the outermost one on, with dots between them, such as "options.size"',
  );

const mediaType = z
  .string()
  .max(100)
  .regex(
    /^[a-z0-9!#$&^_.+-]+\/([a-z0-9!#$&^_.+-]+|\*)$/,
    'write a media type without parameters, such as "image/png"',
  );

const jsonSchema = z.record(z.string(), z.unknown());

const timeouts = z.strictObject({
  headersMs: whole(1, LONGEST_PAUSE_MS)
    .optional()
    .describe('The longest wait for the first byte of an answer, in milliseconds. Default: 15000'),
  idleMs: whole(1, LONGEST_PAUSE_MS)
    .optional()
    .describe('The longest pause within an answer, in milliseconds. Default: 30000'),
  wholeMs: whole(1, LONGEST_STREAM_MS)
    .optional()
    .describe(
      'The longest that a whole answer may take, in milliseconds, unless its route says otherwise. Default: 20000',
    ),
});

const breaker = z.strictObject({
  failures: whole(1, 1_000)
    .optional()
    .describe('How many failures in a row make calls fail at once for a while, uncharged. Default: 5'),
  openMs: whole(100, 3_600_000)
    .optional()
    .describe('How long calls then fail at once before one is tried again, in milliseconds. Default: 10000'),
});

const upstream = z.strictObject({
  url: z
    .string()
    .max(2_000)
    .describe(
      'Address of the API, with http or https, and with a path if all of its paths begin with one. It holds no credentials',
    ),
  prefix: z
    .string()
    .max(200)
    .optional()
    .describe(
      'The beginning of the public paths of its routes. It is cut off before a call is sent on. Default: "/" and the name of the upstream',
    ),
  headers: named(headerName, credential, 20)
    .optional()
    .describe(
      `Credentials that are sent with each call: the name of a header, and the environment variable that holds its secret, such as "Bearer ${TOKEN}"`,
    ),
  query: named(z.string().min(1).max(100), credential, 10)
    .optional()
    .describe(
      `Credentials that the API takes as parameters of the address: the name of a parameter, and the environment variable that holds its secret, such as "${TOKEN}"`,
    ),
  fixedHeaders: named(headerName, plainValue, 20)
    .optional()
    .describe('Headers without a secret that are sent with each call, such as a version of the API'),
  timeouts: timeouts.optional().describe('How long calls may take'),
  concurrency: whole(1, 10_000)
    .optional()
    .describe('How many calls it is sent at the same time; a further one is refused, uncharged. Default: 64'),
  keepAlive: z
    .boolean()
    .optional()
    .describe(
      'Whether connections serve more than one call. Write false for an upstream that is not trusted: an answer too many could reach another caller. Default: true',
    ),
  breaker: z
    .union([breaker, z.literal(false)])
    .optional()
    .describe('When calls fail at once because the upstream keeps failing; false: never'),
});

const gate = z.strictObject({
  url: z
    .string()
    .max(2_000)
    .describe(
      'The public address of the server that sells its own routes, with http or https: what is paid for is named by it',
    ),
  secret: credential
    .regex(/^\$/, `write the variable alone: "${TOKEN}"`)
    .describe(
      `The environment variable that holds the secret which that server has too, at least 32 characters: "${TOKEN}"`,
    ),
});

const tier = z.strictObject({
  upTo: z
    .int()
    .min(-1_000_000_000_000)
    .max(1_000_000_000_000)
    .describe('The largest whole number that has this price'),
  price: money.describe('Price of one call in USD, in quotes'),
});

const priceBy = z.strictObject({
  field: jsonPath
    .optional()
    .describe('The field of the JSON body that decides the price, such as "model" or "options.size"'),
  header: headerName.optional().describe('The header that decides the price. It is sent on'),
  query: z
    .string()
    .regex(/^[A-Za-z0-9_.~-]{1,100}$/, 'write the name of a parameter as it stands in an address')
    .optional()
    .describe('The parameter of the address that decides the price'),
  path: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'write the name of a parameter of the path, without its colon')
    .optional()
    .describe('The parameter of the path that decides the price, without its colon'),
  prices: named(z.string().max(200), money, 200)
    .optional()
    .describe('The price of each value, in USD and in quotes'),
  tiers: z
    .array(tier)
    .min(1)
    .max(50)
    .optional()
    .describe(
      'Prices of whole numbers, from the lowest tier to the highest; a larger number is refused unless there is a default',
    ),
  default: money
    .optional()
    .describe(
      'Price in USD of every value that is not listed. Without it, such a call is refused with the list',
    ),
  absent: money
    .optional()
    .describe('Price in USD of a call in which nothing decides. Without it, the default holds'),
});

const metered = z.strictObject({
  bytes: z.literal(true).optional().describe('Counts the bytes of the answer'),
  items: jsonPath
    .optional()
    .describe(
      'Counts the items of this list of the JSON answer, such as "results"; "$" where the answer itself is the list',
    ),
  usage: jsonPath
    .optional()
    .describe(
      'The field with the whole number that is counted, such as "usage.total_tokens": of the JSON answer, or of the last server-sent event that has it',
    ),
  price: money.describe('Price in USD of as many as "per" says, in quotes'),
  per: whole(1, 1_000_000_000)
    .optional()
    .describe('How many of them have the price, such as 1000000. Default: 1'),
  atMost: money.describe(
    'The most that one call costs in USD, in quotes. It is reserved while the call runs',
  ),
  whenUnmeasured: money
    .optional()
    .describe(
      'Price in USD of an answer that does not tell the number, or tells none that is whole and not below zero; of a stream too whose reader leaves before it came. Needed beside items and usage',
    ),
});

const success = z.strictObject({
  status: z
    .array(whole(200, 299))
    .min(1)
    .max(20)
    .optional()
    .describe('The statuses that are an answer. Default: all 2xx but 206'),
  contentType: z
    .array(mediaType)
    .min(1)
    .max(20)
    .optional()
    .describe('The media types that are an answer, such as "application/json" or "image/*". Default: any'),
  has: z
    .array(jsonPath)
    .min(1)
    .max(20)
    .optional()
    .describe('Fields that the JSON answer must have, and not as null'),
  hasNot: z
    .array(jsonPath)
    .min(1)
    .max(20)
    .optional()
    .describe(
      'Fields that the JSON answer must not have, unless they are null or an empty list, such as "errors"',
    ),
  equals: named(
    jsonPath,
    z.union([z.string().max(200), z.number().min(-1e15).max(1e15), z.boolean(), z.null()]),
    20,
  )
    .optional()
    .describe('Fields that the JSON answer must have with just this value'),
  mayEndByClose: z
    .boolean()
    .optional()
    .describe(
      'Whether an answer counts that has no length, so that only the end of its connection tells its end. It may have been cut off. Default: false',
    ),
  lastEvent: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'The data of the server-sent event with which a stream is whole, such as "[DONE]". For streamed answers alone',
    ),
  minBytes: whole(0, 1_000_000_000).optional().describe('The least size of the body in bytes. Default: 0'),
});

const stream = z.strictObject({
  maxOpen: whole(1, 100_000)
    .optional()
    .describe(
      'How many streams of this route may be open at the same time; a further call is refused, uncharged. Default: 100',
    ),
  maxMs: whole(1, LONGEST_STREAM_MS)
    .optional()
    .describe(
      'The longest that a stream may take, in milliseconds; its reader may keep it waiting as long again. Default: 120000',
    ),
});

const quota = z.strictObject({
  perMinute: whole(1, 1_000_000)
    .optional()
    .describe('The most calls of this route that a key may begin in a minute. Default: no bound'),
  perDay: whole(1, 1_000_000_000)
    .optional()
    .describe('The most calls of this route that a key may begin on a day (UTC). Default: no bound'),
});

const planOfRoute = z.strictObject({
  price: money.optional().describe('Price of one call in USD, in quotes, for keys of this plan'),
  priceBy: priceBy
    .optional()
    .describe('Prices for keys of this plan, decided by the same thing as the prices of the route'),
  freeCallsPerDay: whole(0, MOST_FREE_A_DAY)
    .optional()
    .describe(
      'How many calls of a day (UTC) cost keys of this plan nothing. Default: as many as the route says',
    ),
  quota: z
    .union([quota, z.literal(false)])
    .optional()
    .describe('Bounds for keys of this plan in place of those of the route; false: none'),
});

const plan = z.strictObject({
  accounts: z
    .array(z.int().min(FIRST_CUSTOMER).max(Number.MAX_SAFE_INTEGER))
    .min(1)
    .max(10_000)
    .describe(
      'Whose keys have this plan: the numbers of their accounts, as /admin shows them. They stay when a key is rotated',
    ),
});

const example = z.strictObject({
  params: named(z.string().max(64), z.string().min(1).max(200), 32)
    .optional()
    .describe('A value for each parameter of the path'),
  query: named(z.string().max(100), z.string().max(500), 50).optional().describe('Parameters of the address'),
  headers: named(headerName, plainValue, 20).optional().describe('Headers of the request'),
  body: z.unknown().optional().describe('The JSON body'),
});

const request = z.strictObject({
  query: jsonSchema
    .optional()
    .describe('JSON Schema of an object with the parameters of the address, each a text'),
  path: jsonSchema.optional().describe('JSON Schema of an object with the parameters of the path'),
  body: jsonSchema.optional().describe('JSON Schema of the body'),
});

const route = z.strictObject({
  upstream: z.string().max(40).optional().describe('The name of the upstream that answers'),
  gate: z
    .string()
    .max(40)
    .optional()
    .describe('In place of an upstream: the name of the gate behind which a server answers by itself'),
  price: money.optional().describe('Price of one call in USD, in quotes: "0.02"'),
  priceBy: priceBy.optional().describe('A price that something in the request decides'),
  metered: metered
    .optional()
    .describe('A price by what comes out, up to a ceiling. Only keys pay for such a route, and no wallets'),
  free: z.literal(true).optional().describe('The route costs nothing'),
  freeCallsPerDay: whole(1, MOST_FREE_A_DAY)
    .optional()
    .describe(
      'How many calls of a day (UTC) cost a key nothing, if credit on it was ever paid for. Keys that were bought with its credit count with it. Default: none',
    ),
  quota: quota
    .optional()
    .describe('The most calls that a key may begin; a further one is refused, uncharged'),
  plans: named(word, planOfRoute, MOST_PLANS)
    .optional()
    .describe('Other prices and bounds for the keys of a plan, by its name under "plans"'),
  effect: z
    .enum(['read', 'write'])
    .optional()
    .describe(
      'Whether a call changes something. A read may be tried again by itself. Default: read for GET, write for all others',
    ),
  upstreamKnowsIdempotencyKey: z
    .boolean()
    .optional()
    .describe(
      'Whether the upstream does nothing twice for the same Idempotency-Key. Only then is a write sent again that timed out. Default: false',
    ),
  success: success.optional().describe('What counts as an answer. Anything else costs nothing'),
  requestHeaders: z
    .array(headerName)
    .max(32)
    .optional()
    .describe(
      'Further headers of the caller that are sent on. Name "range" or a header such as "if-none-match" only here',
    ),
  answerHeaders: z
    .array(headerName)
    .max(32)
    .optional()
    .describe('Further headers of the upstream that come back'),
  answer: z
    .enum(['kept', 'streamed'])
    .optional()
    .describe(
      'kept: the answer is stored, and a repeat gets it again. streamed: it is sent as it comes. Default: kept',
    ),
  stream: stream.optional().describe('Bounds of a streamed answer'),
  maxRequestBytes: whole(0, MOST_REQUEST_BYTES)
    .optional()
    .describe('The largest body of a request, in bytes. Default: 262144'),
  maxAnswerBytes: whole(1, 1_073_741_824)
    .optional()
    .describe(
      `The largest answer, in bytes: at most ${MOST_KEPT_BYTES} where it is kept. A larger one costs nothing. Default: 1000000 kept, 268435456 streamed`,
    ),
  timeoutMs: whole(1, LONGEST_KEPT_MS)
    .optional()
    .describe(
      'The longest that a call whose answer is kept may take, in milliseconds. Default: what its upstream says',
    ),
  name: z.string().min(1).max(80).optional().describe('A short name. Default: the key of the route'),
  summary: z.string().min(1).max(200).optional().describe('One sentence: what the caller gets'),
  tags: z
    .array(z.string().min(1).max(40))
    .min(1)
    .max(5)
    .optional()
    .describe('Under which headings the catalog shows it'),
  example: example.optional().describe('A call that works. Every document shows it'),
  request: request.optional().describe('JSON Schemas of the request'),
  response: jsonSchema.optional().describe('JSON Schema of the answer'),
});

const houseService = z.strictObject({
  price: money.optional().describe('Price of one call in USD, in quotes'),
  available: z.boolean().optional().describe('Whether it is for sale'),
  mpp: z.boolean().optional().describe('Whether it is sold for MPP credentials too'),
});

export const configSchema = z
  .strictObject({
    $schema: z.string().max(500).optional().describe('Address of this schema, for editors'),
    upstreams: named(word, upstream, MOST_UPSTREAMS)
      .optional()
      .describe('The APIs that are sold, by names of your own'),
    gates: named(word, gate, MOST_GATES)
      .optional()
      .describe('Servers that sell routes of their own with @farebox/gate, by names of your own'),
    routes: named(
      z.string().max(MOST_KEY_CHARACTERS).meta({ pattern: '^(GET|POST|PUT|PATCH|DELETE) /' }),
      route,
      MOST_ROUTES,
    )
      .optional()
      .describe(
        'All that is sold, by method and public path, such as "GET /v1/stations/:id". Other paths are not sent on',
      ),
    plans: named(word, plan, MOST_PLANS)
      .optional()
      .describe('Customers whose keys have prices and bounds of their own, by names of your own'),
    services: named(z.string().max(200), houseService, 500)
      .optional()
      .describe('Prices and availability of services that the server ships with, by their paths'),
  })
  .meta({
    title: 'farebox.config',
    description: 'What a Farebox server sells: upstreams, and their routes with prices.',
  });

/** A configuration as it is written. */
export type ConfigInput = z.input<typeof configSchema>;
export type RouteInput = z.output<typeof route>;
export type PlanOfRouteInput = z.output<typeof planOfRoute>;
export type GateInput = z.output<typeof gate>;
export type UpstreamInput = z.output<typeof upstream>;

/** The configuration's JSON Schema, as editors read it. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configSchema, { io: 'input' });
}
