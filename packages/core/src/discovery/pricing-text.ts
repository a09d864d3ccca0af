/** The page of prices: calls, ways to pay, and what costs nothing, from what is sold and which ways to pay work now. */
import { callsBought } from '../service/calls-bought.ts';
import type { Service } from '../service/define.ts';
import { CHARGING_RULE, DRY_RUN_RULE } from './call-errors.ts';
import { trialOf } from './capabilities.ts';
import { type DiscoveryContext, priceRange } from './context.ts';
import type { Groups } from './groups.ts';
import { inMarkdown, row } from './markdown.ts';
import { CATALOG_PAGE, type Readable } from './readable.ts';
import { dollars, mppWords, x402Words } from './shown-words.ts';

export const PRICING_PAGE = '/pricing';

/** The page of prices. */
export function pricingText(context: DiscoveryContext, groups: Groups): Readable {
  const range = priceRange(context.services);
  const said =
    range === null
      ? 'Nothing is for sale now.'
      : `${dollars(range.minUsd)} to ${dollars(range.maxUsd)} a call. No subscription, no minimum.`;
  const markdown = [
    '# Pricing',
    '',
    `${said} ${CHARGING_RULE}`,
    '',
    '## What a call costs',
    '',
    ...pricesByGroup(context, groups),
    '',
    `[Every service with its price](${CATALOG_PAGE})`,
    '',
    '## How a call is paid',
    '',
    ...waysToPay(context),
    '',
    ...creditTiers(context),
    '## What costs nothing',
    '',
    '- A call that fails, or that the source has no answer to.',
    '- The catalog, these pages, and every document for programs.',
    `- Asking what a call would cost. ${DRY_RUN_RULE}`,
    '',
  ];
  return {
    path: PRICING_PAGE,
    title: 'Pricing',
    description: said,
    markdown: markdown.join('\n'),
  };
}

function pricesByGroup({ services }: DiscoveryContext, groups: Groups): string[] {
  const rows = groups.among(services).map((group) => {
    const prices = services
      .filter((each) => groups.of(each) === group)
      .toSorted((a, b) => Number(a.priceUsd) - Number(b.priceUsd));
    const shown = [prices[0], prices[Math.floor(prices.length / 2)], prices.at(-1)];
    const link = `[${inMarkdown(group)}](${CATALOG_PAGE}?group=${encodeURIComponent(group)})`;
    return row(link, String(prices.length), ...shown.map((each) => priceOf(each)));
  });
  return [
    row('Group', 'Services', 'From', 'Median', 'To'),
    row('---', '---:', '---:', '---:', '---:'),
    ...rows,
  ];
}

function priceOf(service: Service | undefined): string {
  return service === undefined ? '' : dollars(service.priceUsd);
}

function waysToPay(context: DiscoveryContext): string[] {
  const trial = trialOf(context);
  const key = [
    ...(trial === null
      ? []
      : [`a trial key with ${dollars(trial.creditsUsd)} for ${trial.lifetimeDays} days`]),
    ...(context.cardCheckout ? ['credit by card'] : []),
  ];
  const [x402, mpp] = [x402Words(context), mppWords(context)];
  return [
    row('Way', 'What it needs', 'What it pays with'),
    row('---', '---', '---'),
    row(
      'A key with credit',
      'the key in `X-API-KEY`',
      key.length === 0 ? 'credit that the operator grants' : key.join(', or '),
    ),
    ...(x402 === null ? [] : [row('x402', 'a wallet that signs; no account', x402)]),
    ...(mpp === null ? [] : [row('MPP', 'a wallet that pays a challenge; no account', mpp)]),
  ];
}

/** The amounts of credit and how far each goes; empty while no card can be charged. */
function creditTiers({ cardCheckout, tiers, services }: DiscoveryContext): string[] {
  if (!cardCheckout) return [];
  return [
    '## Credit by card',
    '',
    row('Credit', 'What it buys'),
    row('---:', '---'),
    ...tiers.map(({ amountUsd }) => row(`$${amountUsd}.00`, inMarkdown(callsBought(amountUsd, services)))),
    '',
    '[Buy credit](/keys#buy)',
    '',
  ];
}
