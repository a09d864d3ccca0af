/** A route of the configuration as a service. */
import { priceInUsd } from '@farebox/core/ledger/money';
import { defineContentService, type Service } from '@farebox/core/service/define';
import type { MeteredPrice } from '@farebox/core/service/metered';
import type { ShownRoute } from '@farebox/core/service/route';
import type { MeterRule, PriceSource, Route } from '../config/proxy-config.ts';
import { askUpstream, routeStream, wholeBoundsOf } from './ask-upstream.ts';
import { unanswered } from './no-answer.ts';
import { isBounding, type RouteCall, readRequest, type SentBy, written } from './route-call.ts';
import { exampleOf, fieldsOf } from './route-input.ts';

/** The means by which a route is sold. */
export interface RouteParts extends SentBy {
  /** Unique among all services: lower-case words and dashes. */
  readonly id: string;
  readonly tag: string;
}

/** The service that sells a route. */
export function routeService(parts: RouteParts): Service {
  const { route, id, tag, upstream } = parts;
  const fields = fieldsOf(route);
  const stream = route.answer === 'streamed' ? routeStream(parts) : null;
  return defineContentService({
    path: id,
    name: route.name,
    tag,
    priceUsd: priceInUsd(highestMicrosOf(route)),
    summary: route.summary ?? `${route.key}, answered by ${route.upstream.name}.`,
    input: fields.schema,
    example: exampleOf(route, fields),
    contentType: route.success.contentType?.find((type) => !type.endsWith('*')) ?? 'application/json',
    // A chain moves what was signed, and no less.
    ...(route.sale.kind === 'metered'
      ? { metered: meteredPriceOf(route.sale.meter) }
      : { mpp: true as const }),
    effect: route.effect,
    timeoutMs: wholeBoundsOf(route).timeoutMs,
    ...(stream === null ? {} : { stream }),
    route: {
      method: route.method,
      address: route.path.text,
      shown: shownOf(route),
      read: ({ http, rawBody }) =>
        http === null
          ? readRequest(parts, written(route, fields, rawBody))
          : readRequest(parts, { ...http, rawBody }),
    },
    async beforeSettling() {
      const { retryAfterMs, isOpen } = upstream.state;
      if (isOpen) throw unanswered('down', retryAfterMs, 'it has been failing');
      stream?.assertOpen();
    },
    run: (input, context) => {
      const { call, signal, nowMs } = context;
      const { orderId, caller } = call;
      return askUpstream(parts, input as unknown as RouteCall, { orderId, caller, signal, nowMs });
    },
  });
}

/** A route as documents show it. */
function shownOf(route: Route): ShownRoute {
  const { request, response, sale, example, bounds } = route;
  const { params = {}, query = {}, headers = {}, body } = example ?? {};
  const path = route.path.segments
    .map((each) => (each.kind === 'literal' ? each.text : encodeURIComponent(params[each.name] ?? each.name)))
    .join('/');
  const search = new URLSearchParams(query);
  return {
    path: request.path,
    query: request.query,
    body: request.body,
    answer: response,
    headers: route.requestHeaders,
    ...(isBounding(bounds) ? { bounds } : {}),
    example: { url: `/${path}${search.size === 0 ? '' : `?${search}`}`, headers, body },
    prices: pricesOf(sale),
  };
}

function pricesOf(sale: Route['sale']): ShownRoute['prices'] {
  if (sale.kind === 'metered')
    return {
      lowestUsd: '0',
      highestUsd: priceInUsd(sale.meter.atMostMicros),
      decidedBy: `the ${measuredWords(sale.meter)}`,
    };
  if (sale.kind !== 'by') return null;
  const { source, lowestMicros, highestMicros } = sale.rule;
  return {
    lowestUsd: priceInUsd(lowestMicros),
    highestUsd: priceInUsd(highestMicros),
    decidedBy: sourceWords(source),
  };
}

function meteredPriceOf(meter: MeterRule): MeteredPrice {
  return {
    measured: measuredWords(meter),
    priceUsd: priceInUsd(meter.priceMicros),
    per: Number(meter.per),
    atMostUsd: priceInUsd(meter.atMostMicros),
    whenUnmeasuredUsd: meter.measure.kind === 'bytes' ? null : priceInUsd(meter.whenUnmeasuredMicros),
  };
}

function measuredWords({ measure }: MeterRule): string {
  if (measure.kind === 'bytes') return 'bytes of the answer';
  if (measure.kind === 'usage') return `units in ${measure.path.join('.')} of the answer`;
  return measure.path.length === 0
    ? 'items of the answer'
    : `items in ${measure.path.join('.')} of the answer`;
}

function sourceWords(source: PriceSource): string {
  if (source.kind === 'field') return `the field ${source.names.join('.')} of the body`;
  const place = { header: 'the header', query: 'the query parameter', path: 'the path parameter' }[
    source.kind
  ];
  return `${place} ${source.name}`;
}

/** The most that one call costs. */
function highestMicrosOf({ sale }: Route): bigint {
  if (sale.kind === 'fixed') return sale.priceMicros;
  if (sale.kind === 'metered') return sale.meter.atMostMicros;
  return sale.kind === 'by' ? sale.rule.highestMicros : 0n;
}
