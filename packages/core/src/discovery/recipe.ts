import type { Service } from '../service/define.ts';
import { exampleAnswerOf } from '../service/example-answer.ts';
import { inputSchemaOf, outputSchemaOf } from '../service/json-schema.ts';
import { meteredWords } from '../service/metered.ts';
import { CALL_ERRORS, CHARGING_RULE, REPEAT_RULE } from './call-errors.ts';
import type { DiscoveryContext } from './context.ts';
import { exampleCallOf, fetchOptionsOf, quoted, shellQuoted } from './example-call.ts';
import { atItsRoute, formAtRoute } from './own-address.ts';
import {
  MPP_CHALLENGE_SCHEME,
  MPP_CREDENTIAL_SCHEME,
  methodsFor,
  mppCommandOf,
  mppEndpointOf,
  mppMethodsOf,
  mppOffersOf,
  mppProgramOf,
  mppRules,
} from './pay-by-mpp.ts';
import {
  amountUnitsOf,
  claimRuleOf,
  networksFor,
  spendingCapOf,
  walletProgramOf,
  walletRules,
} from './pay-by-wallet.ts';
import { answersJson, readAnswerOf } from './read-answer.ts';
import { chainsOf } from './readable-chains.ts';

/** `/x402/recipes/{service}`: everything needed to buy this one service, ready to paste. */
export function recipeDocument(service: Service, context: DiscoveryContext) {
  const { available, reason, message, supply } = context.availability(service);
  return {
    service: service.path,
    name: service.name,
    tag: service.tag,
    description: service.summary,
    method: 'POST',
    endpoint: endpointOf(service, context),
    ...atItsRoute(service, context),
    ...formAtRoute(service),
    priceUsd: service.priceUsd,
    available,
    unavailableReason: reason,
    unavailableMessage: message,
    chains: chainsOf(service, context),
    freshAnswersPerHour: supply == null ? null : { most: supply.answersPerHour, source: supply.source },
    payment: {
      apiKey: {
        header: 'X-API-KEY',
        alternativeHeader: 'Authorization: Bearer <key>',
        freeKey: context.trial === null ? null : `${context.baseUrl}/api/m2m/credits/trial`,
      },
      x402: byWallet(service, context),
      mpp: byMpp(service, context),
    },
    charged: `${chargedOf(service)} with the answer. ${CHARGING_RULE}`,
    repeating: REPEAT_RULE,
    timeoutMs: service.timeoutMs,
    example: service.example,
    curl: curlOf(service, context),
    fetch: fetchOf(service, context),
    python: pythonOf(service, context),
    inputSchema: inputSchemaOf(service),
    answer: {
      description: answersJson(service)
        ? 'These fields at the top level of the body, beside `success`, `service`, `timestamp` and `provenance` (the sources, their time and the method). An unknown value is null, with a note.'
        : 'The body is the answer itself; `X-Provenance` has its sources, their time and the method, as JSON.',
      mediaType: service.mediaType,
      headers: [
        ...(answersJson(service) ? [] : ['X-Provenance']),
        ...['X-Credits-Used', 'X-Credits-Remaining', 'X-Payment-Method', 'X-Call-Id'],
        ...(networksFor(service, context).length === 0 ? [] : ['PAYMENT-RESPONSE', 'X-Payment-Transaction']),
        ...(mppEndpointOf(service, context) === null ? [] : ['Payment-Receipt']),
      ],
      ...(answersJson(service)
        ? { outputSchema: outputSchemaOf(service), example: exampleAnswerOf(service) }
        : {}),
    },
    streaming: inPieces(service, context),
    errors: CALL_ERRORS,
  };
}

/** The amount in words: what is reserved, where the answer decides how much of that is taken. */
function chargedOf({ priceUsd, metered }: Service): string {
  return metered === null ? `${priceUsd} USD` : `At most ${priceUsd} USD (${meteredWords(metered)})`;
}

/** How a wallet buys this service; null when it cannot. */
function byWallet(service: Service, context: DiscoveryContext) {
  const networks = networksFor(service, context);
  if (networks.length === 0) return null;
  return {
    header: 'X-PAYMENT',
    alternativeHeader: 'PAYMENT-SIGNATURE',
    scheme: 'exact',
    amount: amountUnitsOf(service),
    networks,
    paidFirst: service.effect === 'write',
    spendingCap: spendingCapOf(service),
    claim: claimRuleOf(service),
    program: walletProgramOf(service, context),
    rules: walletRules(context),
  };
}

/** How MPP buys this service; null when it does not. */
function byMpp(service: Service, context: DiscoveryContext) {
  const endpoint = mppEndpointOf(service, context);
  if (endpoint === null) return null;
  return {
    endpoint,
    header: MPP_CREDENTIAL_SCHEME,
    challengeHeader: MPP_CHALLENGE_SCHEME,
    receiptHeader: 'Payment-Receipt',
    methods: mppMethodsOf(context),
    offers: mppOffersOf(service, context),
    commands: Object.fromEntries(
      methodsFor(service, context).map((each) => [each.method, mppCommandOf(service, context, each)]),
    ),
    program: mppProgramOf(service, context),
    rules: mppRules(context),
  };
}

/** How this service streams its answer; null when it does not. */
function inPieces(service: Service, context: DiscoveryContext) {
  const { stream } = service;
  if (stream === null) return null;
  if (stream.form === 'bytes') return asItComes(service, stream.timeoutMs);
  return {
    ask: { [stream.field]: true },
    mediaType: 'text/event-stream',
    timeoutMs: stream.timeoutMs,
    description:
      'Server-sent events as the answer is made. `result` is the last one, and its data is the JSON of the whole answer; `error` is the last one of a stream that failed, in the form of every error. With a key the price is taken before `result` leaves; on a chain it is paid before the first event. A stream that we break is not charged, or sent back; one that its reader leaves is. A repeat with the same payment gets the same events; one too long to be kept, as the 402 says, gets 409 ANSWER_NOT_KEPT.',
    curl: curlOf({ ...service, example: { ...service.example, [stream.field]: true } }, context).replace(
      'curl -sS ',
      'curl -sSN ',
    ),
  };
}

/** How an answer leaves at the service's own address as it comes, and nowhere else. */
function asItComes({ route, mediaType }: Service, timeoutMs: number) {
  return {
    address: route === null ? null : `${route.method} ${route.address}`,
    mediaType,
    timeoutMs,
    description:
      'At its own address the answer leaves as it comes, and is not kept: a repeat with the same payment or Idempotency-Key gets 409 ANSWER_NOT_KEPT. With a key the price is taken before its last bytes leave; on a chain it is paid before the first. A stream that we break is cut off, and not charged, or sent back; one that its reader leaves is charged. Other doors gather the answer.',
  };
}

/** The call as a shell command. The key is read from the environment, so that the text holds no secret. */
export function curlOf(service: Service, context: DiscoveryContext): string {
  const { method, url, headers, body } = exampleCallOf(service, context);
  return [
    `curl -sS ${method === 'GET' ? '' : `-X ${method} `}${shellQuoted(url)}`,
    `  -H "X-API-KEY: $${keyVariable(context)}"`,
    ...Object.entries(headers).map(([name, value]) => `  -H ${alwaysQuoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`  -d ${alwaysQuoted(JSON.stringify(body))}`]),
  ].join(' \\\n');
}

function fetchOf(service: Service, context: DiscoveryContext): string {
  const call = exampleCallOf(service, context);
  const key = `'X-API-KEY': process.env.${keyVariable(context)}`;
  return `const response = await fetch(${quoted(call.url)}, {
${fetchOptionsOf(call, [key])}
});
${readAnswerOf(service)}
console.log(answer, 'credits left:', response.headers.get('X-Credits-Remaining'));`;
}

function pythonOf(service: Service, context: DiscoveryContext): string {
  const { method, url, headers, body } = exampleCallOf(service, context);
  const named = Object.entries(headers).map(
    ([name, value]) => `${pythonLiteral(name)}: ${pythonLiteral(value)}`,
  );
  const isPlain = method === (body === undefined ? 'GET' : 'POST');
  return `import json, os, urllib.request

request = urllib.request.Request(
    ${pythonLiteral(url)},${isPlain ? '' : `\n    method="${method}",`}${body === undefined ? '' : `\n    data=json.dumps(${pythonLiteral(body)}).encode(),`}
    headers={${[`"X-API-KEY": os.environ["${keyVariable(context)}"]`, ...named].join(', ')}},
)
with urllib.request.urlopen(request, timeout=30) as response:
    print(${answersJson(service) ? 'json.load(response)' : 'response.read()'}, "credits left:", response.headers["X-Credits-Remaining"])`;
}

function endpointOf(service: Service, context: DiscoveryContext): string {
  return `${context.baseUrl}/x402/${service.path}`;
}

function keyVariable(context: DiscoveryContext): string {
  return `${context.product.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}_API_KEY`;
}

function alwaysQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (typeof value === 'object') {
    const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
    return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}: ${pythonLiteral(inner)}`).join(', ')}}`;
  }
  // A JSON string is also a Python string: both know \\n, \\" and \\uXXXX.
  return JSON.stringify(value);
}
