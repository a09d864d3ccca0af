import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type ImportedApi, type ImportOptions, importOpenApi, NoOpenApi } from './import-openapi.ts';
import { readConfigText } from './load.ts';
import type { ProxyConfig, Route } from './proxy-config.ts';

const OPTIONS: ImportOptions = { priceUsd: '0.05', url: null, upstream: null, schema: null };

/** Imports a document and loads the text again, as a server would. */
function taken(
  document: unknown,
  options: Partial<ImportOptions> = {},
): ImportedApi & { config: ProxyConfig } {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const made = importOpenApi(text, { ...OPTIONS, ...options });
  const env = Object.fromEntries(made.variables.map(({ name }) => [name, 'secret']));
  const config = readConfigText(made.text, 'farebox.config.yaml', { env, serviceNames: null });
  assert.equal(config.routes.length, made.routes);
  return { ...made, config };
}

function routeAt(config: ProxyConfig, key: string): Route {
  const route = config.routes.find((each) => each.key === key);
  assert(route !== undefined, `${key} is not among ${config.routes.map((each) => each.key).join(', ')}`);
  return route;
}

const doc = (paths: object, more: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'Pet Store' },
  servers: [{ url: 'https://api.example.com/v2/' }],
  paths,
  ...more,
});
const OK = { responses: { 200: { description: 'ok' } } };

const PETS = `
openapi: 3.0.3
info: { title: "Pets, and more!", version: 1.0.0 }
servers:
  - url: https://api.example.com/v2
paths:
  /pets/{pet-id}:
    parameters:
      - { name: pet-id, in: path, required: true, schema: { type: integer }, example: 7 }
    get:
      operationId: getPet
      summary: |
        Reads
        one pet.
      tags: [Pets]
      parameters:
        - $ref: '#/components/parameters/Fields'
        - { name: X-Trace, in: header, schema: { type: string } }
        - { name: session, in: cookie, schema: { type: string } }
      responses:
        '200':
          content:
            application/json: { schema: { $ref: '#/components/schemas/Pet' } }
    head: { responses: { '200': { description: x } } }
    trace: { responses: { '200': { description: x } } }
  /pets:
    post:
      description: Adds a pet. Nothing else happens.
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: '#/components/schemas/Pet' } }
      responses: { '201': { description: x } }
      callbacks: { added: {} }
  /pets/import:
    post:
      requestBody: { content: { multipart/form-data: { schema: { type: object } } } }
      responses: { '200': { description: x } }
  /files/{name}.json:
    get: { responses: { '200': { description: x } } }
  /admin/x:
    get: { responses: { '200': { description: x } } }
components:
  parameters:
    Fields: { name: fields, in: query, required: true, schema: { type: string, enum: [all, few] } }
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        name: { type: string, nullable: true, example: Rex, xml: { attribute: true } }
        age: { type: integer, minimum: 0, exclusiveMinimum: true }
        id: { type: integer, readOnly: true, example: 1 }
`;

describe('a document of OpenAPI', () => {
  test('becomes one route for each operation, with price, summary, tags, schemas and example', () => {
    const { config, text, routes } = taken(PETS);
    assert.equal(routes, 2);
    const [upstream] = config.upstreams;
    assert.deepEqual(
      [upstream?.name, upstream?.origin, upstream?.basePath, upstream?.prefix],
      ['pets-and-more', 'https://api.example.com', '/v2', ''],
    );
    const get = routeAt(config, 'GET /pets/:pet_id');
    assert.deepEqual(get.sale, { kind: 'fixed', priceMicros: 50_000n });
    assert.deepEqual([get.name, get.summary, get.tags], ['getPet', 'Reads one pet.', ['Pets']]);
    assert.deepEqual(get.requestHeaders, ['x-trace']);
    assert.deepEqual(get.request.query, {
      type: 'object',
      properties: { fields: { type: 'string', enum: ['all', 'few'] } },
      required: ['fields'],
    });
    assert.deepEqual(get.request.path, {
      type: 'object',
      properties: { pet_id: { type: 'integer' } },
      required: ['pet_id'],
    });
    assert.deepEqual(get.example, {
      params: { pet_id: '7' },
      query: { fields: 'all' },
      headers: {},
      body: undefined,
    });
    const pet = {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: ['string', 'null'], examples: ['Rex'] },
        age: { type: 'integer', exclusiveMinimum: 0 },
        id: { type: 'integer', readOnly: true, examples: [1] },
      },
    };
    assert.deepEqual(get.response, pet);
    const post = routeAt(config, 'POST /pets');
    assert.deepEqual(post.request.body, pet);
    assert.deepEqual(post.example?.body, { name: 'Rex' });
    assert.equal(post.summary, 'Adds a pet. Nothing else happens.');
    assert(!text.includes('#') && text.includes('price: "0.05"'), text);
  });

  test('says what it left out, and why', () => {
    assert.deepEqual(
      taken(PETS).leftOut.map(({ where, why }) => `${where}: ${why}`),
      [
        'HEAD /pets/{pet-id}: the server answers this method by itself, for every route',
        'TRACE /pets/{pet-id}: this method is not sold',
        'GET /pets/{pet-id}: the cookie session: cookies are never sent on',
        'POST /pets: its callbacks: the upstream makes those calls, and nobody sells them',
        'POST /pets/import: the whole operation, since its body is in parts (multipart)',
        'GET /files/{name}.json: a parameter is a whole segment of a path, and {name}.json is more than that',
        "GET /admin/x: paths below /admin are the server's own: choose another path",
      ],
    );
  });

  const rows: [why: RegExp, document: object][] = [
    [/^webhooks: /, doc({ '/a': { get: OK } }, { webhooks: { x: {} } })],
    [
      /^servers: the address of the server is a template/,
      doc({ '/a': { get: OK } }, { servers: [{ url: 'https://{tenant}.example.com' }] }),
    ],
    [/^servers: the document names no server/, doc({ '/a': { get: OK } }, { servers: [] })],
    [
      /^servers: the address of the server has no host/,
      doc({ '/a': { get: OK } }, { servers: [{ url: '/api/v3' }] }),
    ],
    [
      /^servers: the address of the server holds credentials/,
      doc({ '/a': { get: OK } }, { servers: [{ url: 'https://a:b@c' }] }),
    ],
    [
      /^servers: 1 further servers/,
      doc({ '/a': { get: OK } }, { servers: [{ url: 'https://a' }, { url: 'https://b' }] }),
    ],
    [/^GET \/a: the servers of the operation/, doc({ '/a': { get: { ...OK, servers: [] } } })],
    [/^\/b: this path is not in this document/, doc({ '/a': { get: OK }, '/b': { $ref: 'other.yaml' } })],
    [
      /^GET \/a: the schema of its answer: its schema refers to itself by #\/components\/schemas\/T/,
      doc(
        {
          '/a': {
            get: {
              responses: {
                200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/T' } } } },
              },
            },
          },
        },
        { components: { schemas: { T: { properties: { next: { $ref: '#/components/schemas/T' } } } } } },
      ),
    ],
    [
      /refers to another document: x\.json/,
      doc({ '/a': { get: { parameters: [{ name: 'q', in: 'query', schema: { $ref: 'x.json' } }] } } }),
    ],
    [
      /refers to #\/nowhere, which is not there/,
      doc({ '/a': { get: { parameters: [{ name: 'q', in: 'query', schema: { $ref: '#/nowhere' } }] } } }),
    ],
    [
      /^GET \/b\/\{y\}: it matches the same addresses as GET \/b\/\{x\}/,
      doc({ '/b/{x}': { get: OK }, '/b/{y}': { get: OK } }),
    ],
    [
      /^GET \/b: the whole operation, since it needs the cookie s/,
      doc({
        '/a': { get: OK },
        '/b': { get: { parameters: [{ name: 's', in: 'cookie', required: true }] } },
      }),
    ],
    [
      /the header X-Payment: it belongs to payments/,
      doc({ '/a': { get: { parameters: [{ name: 'X-Payment', in: 'header' }] } } }),
    ],
    [
      /the parameter f, which is an object in the address/,
      doc({ '/a': { get: { parameters: [{ name: 'f', in: 'query', style: 'deepObject' }] } } }),
    ],
    [/the body of a GET/, doc({ '/a': { get: { requestBody: {} } } })],
    [
      /the schema of its body, which is no JSON; it is sent on as it comes/,
      doc({ '/a': { post: { requestBody: { content: { 'text/csv': {} } } } } }),
    ],
    [/^security: the scheme k is a key in a cookie/, secured({ type: 'apiKey', in: 'cookie', name: 'sid' })],
    [
      /^security: the scheme k is the header x-payment: it belongs to payments/,
      secured({ type: 'apiKey', in: 'header', name: 'X-Payment' }),
    ],
    [/^security: the scheme k \(mutualTLS\) cannot be sent/, secured({ type: 'mutualTLS' })],
    [
      /^security: the scheme other is not declared/,
      doc({ '/a': { get: OK } }, { security: [{ other: [] }] }),
    ],
  ];
  for (const [why, document] of rows)
    test(`of which this is left out: ${why.source}`, () => {
      const said = taken(document).leftOut.map((each) => `${each.where}: ${each.why}`);
      assert(
        said.some((each) => why.test(each)),
        said.join('\n'),
      );
    });

  test('gets the address that is given, in place of its servers', () => {
    const templated = doc({ '/a': { get: OK } }, { servers: [{ url: 'https://{x}.example.com' }] });
    const { config, leftOut } = taken(templated, { url: 'http://127.0.0.1:4000/base', upstream: 'Mine' });
    const [upstream] = config.upstreams;
    assert.deepEqual(
      [upstream?.name, upstream?.origin, upstream?.basePath],
      ['mine', 'http://127.0.0.1:4000', '/base'],
    );
    assert.deepEqual(leftOut, []);
  });

  test('with a stream of events as its only answer becomes a streamed route', () => {
    const stream = { responses: { 200: { content: { 'text/event-stream': {} } } } };
    assert.equal(routeAt(taken(doc({ '/a': { post: stream } })).config, 'POST /a').answer, 'streamed');
  });

  test('writes a schema as often as it is used, but never a huge one', () => {
    const double = Object.fromEntries(
      Array.from({ length: 15 }, (_, index) => [
        `T${index}`,
        {
          properties: {
            a: { $ref: `#/components/schemas/T${index + 1}` },
            b: { $ref: `#/components/schemas/T${index + 1}` },
          },
        },
      ]),
    );
    const body = (name: string) => ({
      requestBody: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } },
    });
    const { leftOut, config } = taken(
      doc(
        { '/a': { post: body('T0') }, '/b': { post: body('Small') }, '/c': { post: body('Small') } },
        { components: { schemas: { ...double, T15: {}, Small: { type: 'object', title: 'Small' } } } },
      ),
    );
    assert.deepEqual(
      leftOut.map(({ where, why }) => `${where}: ${why}`),
      ['POST /a: the schema of its body: its schema is too large to be written out'],
    );
    assert.deepEqual(routeAt(config, 'POST /b').request.body, routeAt(config, 'POST /c').request.body);
  });
});

function secured(scheme: object, more: object = {}): object {
  return doc(
    { '/a': { get: OK } },
    { security: [{ k: [] }], components: { securitySchemes: { k: scheme, ...more } } },
  );
}

describe('the security of a document', () => {
  const rows: [scheme: object, is: string[]][] = [
    [{ type: 'http', scheme: 'Bearer' }, ['header authorization PET_STORE_TOKEN Bearer secret']],
    [{ type: 'oauth2', flows: {} }, ['header authorization PET_STORE_TOKEN Bearer secret']],
    [{ type: 'http', scheme: 'basic' }, ['header authorization PET_STORE_BASIC Basic secret']],
    [{ type: 'apiKey', in: 'header', name: 'X-API-Key' }, ['header x-api-key PET_STORE_KEY secret']],
    [{ type: 'apiKey', in: 'query', name: 'key' }, ['query key PET_STORE_KEY secret']],
  ];
  for (const [scheme, is] of rows)
    test(`becomes a credential from the environment: ${JSON.stringify(scheme)}`, () => {
      const { config } = taken(secured(scheme));
      assert.deepEqual(
        config.upstreams[0]?.credentials.map(
          (each) => `${each.kind} ${each.name} ${each.variable} ${each.reveal()}`,
        ),
        is,
      );
    });

  test('is the first way that can be written, and none where a call needs none', () => {
    const ways = {
      ...doc({
        '/a': { get: { ...OK, security: [{ sid: [] }, {}, { t: [] }] } },
        '/b': { get: { ...OK, security: [] } },
      }),
    };
    const { config } = taken({
      ...ways,
      components: {
        securitySchemes: {
          sid: { type: 'apiKey', in: 'cookie', name: 's' },
          t: { type: 'http', scheme: 'bearer' },
        },
      },
    });
    assert.deepEqual(
      config.upstreams[0]?.credentials.map(({ variable }) => variable),
      ['PET_STORE_TOKEN'],
    );
  });
});

describe('what cannot be imported at all says why:', () => {
  const rows: [text: string, says: RegExp][] = [
    ['', /no OpenAPI 3\.0 or 3\.1/],
    ['{"a":', /line 1, column/],
    ['swagger: "2.0"', /Swagger 2\.0/],
    ['openapi: 4.0.0', /no OpenAPI 3\.0 or 3\.1/],
    ['openapi: 3.1.0\npaths: {}', /no operation of it can be sold/],
    ['openapi: 3.1.0\npaths: { "/{a}.{b}": { get: {} } }', /no operation of it can be sold/],
  ];
  for (const [text, says] of rows)
    test(JSON.stringify(text), () => {
      assert.throws(
        () => importOpenApi(text, OPTIONS),
        (error) => error instanceof NoOpenApi && says.test(error.message),
      );
    });

  test('an address that cannot be one', () => {
    assert.throws(
      () => importOpenApi(JSON.stringify(doc({ '/a': { get: OK } })), { ...OPTIONS, url: 'ftp://a' }),
      NoOpenApi,
    );
  });
});

test('any document is refused or becomes a configuration that loads', () => {
  const words = [
    '$ref',
    'name',
    'in',
    'schema',
    'type',
    'required',
    'properties',
    'get',
    'post',
    '/a',
    '/a/{id}',
    '__proto__',
    'content',
  ];
  const junk = fc.jsonValue({ maxDepth: 2 });
  const leaf = fc.oneof(
    junk,
    fc.constantFrom(
      'query',
      'path',
      'header',
      '#/paths',
      '#/components/schemas/A',
      'object',
      true,
      'é\u0000\n\ud800: "x" # $A',
    ),
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'medium', withCrossShrink: true },
      leaf,
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...words.filter((word) => word !== '__proto__')), tie('tree'), {
        maxKeys: 4,
      }),
    ),
  }));
  const operation = fc.record(
    {
      summary: leaf,
      operationId: leaf,
      tags: tree,
      parameters: fc.array(tree, { maxLength: 3 }),
      requestBody: tree,
      responses: tree,
      security: tree,
      callbacks: tree,
    },
    { requiredKeys: [] },
  );
  const path = fc.oneof(
    fc.constantFrom('/a', '/a/{id}', '/{x}/b', '/mcp', '/a//b', 'b', '/ä'),
    fc.string({ maxLength: 6 }).map((each) => `/${each}`),
  );
  const paths = fc.dictionary(
    path,
    fc.record({ get: operation, post: operation, parameters: tree }, { requiredKeys: [] }),
    { maxKeys: 3 },
  );
  let loaded = 0;
  fc.assert(
    fc.property(
      paths,
      tree,
      tree,
      fc.constantFrom('3.0.1', '3.1.0'),
      leaf,
      (routes, schemas, schemes, openapi, title) => {
        const document = {
          openapi,
          info: { title },
          paths: routes,
          components: { schemas: { A: schemas }, securitySchemes: { k: schemes } },
        };
        try {
          taken(document);
          loaded += 1;
        } catch (error) {
          if (!(error instanceof NoOpenApi)) throw error;
        }
      },
    ),
    { numRuns: 1_500, seed: 29 },
  );
  assert(loaded > 200, `${loaded} documents were loaded`);
});
