/** The 402 for a person: what a call costs, how it is paid, and what a program gets. */
import type { PayPage } from '../http/asked-form.ts';
import type { Service } from '../service/define.ts';
import { CHARGING_RULE } from './call-errors.ts';
import type { DiscoveryContext } from './context.ts';
import { asMarkup } from './page-frame.ts';
import type { Pages } from './pages.ts';
import { waysToPay } from './readable.ts';
import { curlOf } from './recipe.ts';

/** Makes the page of each service that is paid for. @param contextNow asked for each page */
export function payPageOf(pages: Pages, contextNow: () => DiscoveryContext): PayPage {
  return ({ service: path, body }) => {
    const context = contextNow();
    const service = context.services.find((each) => each.path === path) ?? null;
    const asked = JSON.parse(body) as Record<string, unknown>;
    const name = service?.name ?? 'This call';
    const title = `${name} costs ${priceIn(asked, service)}`;
    const page = pages.made({
      path: null,
      title,
      description: CHARGING_RULE,
      main: [
        `<h1>${asMarkup(title)}</h1>`,
        `<p class="lead">${asMarkup(service?.summary ?? CHARGING_RULE)}</p>`,
        ...refusalIn(asked),
        ...(service === null ? [] : waysIn(service, context)),
        '<details><summary>For programs: the answer as JSON</summary>',
        `<pre tabindex="0" aria-label="The answer as JSON"><code>${asMarkup(JSON.stringify(asked, null, 2))}</code></pre>`,
        '</details>',
      ].join('\n'),
    });
    return {
      headers: { ...pages.headers, 'content-type': page.contentType, 'x-content-type-options': 'nosniff' },
      body: page.body.toString(),
    };
  };
}

/** The price of this request; where it does not say one, the service's. */
function priceIn({ price_usd: price }: Record<string, unknown>, service: Service | null): string {
  if (typeof price === 'number') return `$${price < 0.01 ? price : price.toFixed(2)}`;
  return service === null ? 'money' : `$${service.priceUsd}`;
}

/** Why a payment that was sent does not pay. */
function refusalIn({ last_error_reason: refused }: Record<string, unknown>): string[] {
  if (typeof refused !== 'object' || refused === null) return [];
  const { message, hint } = refused as { message?: unknown; hint?: unknown };
  const words = [message, hint].filter((each) => typeof each === 'string').join(' ');
  return [`<p class="notice warn">${asMarkup(words)} Nothing was charged.</p>`];
}

/** One button for each way to pay that works now, and the call. */
function waysIn(service: Service, context: DiscoveryContext): string[] {
  const page = `/docs/${asMarkup(service.path)}`;
  const byWallet = waysToPay(service, context).length > 1;
  return [
    '<div class="actions">',
    ...(context.trial === null
      ? [`<a class="button" href="${page}">Try it</a>`]
      : [`<a class="button" href="${page}#try">Try it with a trial key</a>`]),
    ...(context.cardCheckout ? ['<a class="button secondary" href="/keys#buy">Buy credit</a>'] : []),
    ...(byWallet ? [`<a class="button secondary" href="${page}#code">Pay with a wallet</a>`] : []),
    '</div>',
    '<h2>The call</h2>',
    `<pre tabindex="0" aria-label="The call"><code>${asMarkup(curlOf(service, context))}</code></pre>`,
    `<p class="soft">${asMarkup(CHARGING_RULE)}</p>`,
  ];
}
