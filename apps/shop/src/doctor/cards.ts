/** Looks at the card provider: whether it takes the key, and whether its messages reach this server. */
import { z } from 'zod';
import { type Finding, findingsOf, type Look } from './finding.ts';

const WEBHOOK_PATH = '/api/m2m/credits/webhook';
const endpoints = z.object({ data: z.array(z.object({ url: z.string(), status: z.string() })) });

export function lookAtCards(parts: { providerUrl: string; key: string | null; url: string }): Look[] {
  const { providerUrl, key, url } = parts;
  const says = findingsOf('cards');
  if (key === null) return [{ step: 'cards', look: async () => says.off('nothing is sold by card') }];
  const ask = (path: string, signal: AbortSignal) =>
    fetch(new URL(path, providerUrl), {
      signal,
      redirect: 'manual',
      headers: { authorization: `Bearer ${key}` },
    });
  const webhookUrl = new URL(WEBHOOK_PATH, url).href;

  return [
    {
      step: 'cards',
      async look(signal): Promise<Finding> {
        const { status } = await ask('/v1/events?limit=1', signal);
        if (status === 200) return says.fine('the provider takes the key');
        return says.mend(
          `the provider answers ${status} to the key`,
          'Make a restricted key with the rights that docs/taking-cards.md lists, and set CARD_PROVIDER_KEY.',
        );
      },
    },
    {
      step: 'cards',
      async look(signal): Promise<Finding> {
        const response = await ask('/v1/webhook_endpoints?limit=100', signal);
        const told = endpoints.safeParse(await response.json().catch(() => null)).data;
        if (told === undefined)
          return says.note(
            'the key may not read webhook endpoints, so whether there is one for this server is not known',
          );
        const own = told.data.filter((each) => each.url === webhookUrl);
        return own.some(({ status }) => status === 'enabled')
          ? says.fine('its messages are sent to this server')
          : says.mend(
              `the provider ${own.length === 0 ? 'has no' : 'has switched off the'} webhook for ${webhookUrl}`,
              'Make it there, with the events that docs/taking-cards.md lists, and set CARD_WEBHOOK_SECRET.',
            );
      },
    },
    {
      step: 'cards',
      async look(signal): Promise<Finding> {
        // Without a signature it is refused before anything is read.
        const response = await fetch(webhookUrl, { method: 'POST', body: '{}', signal, redirect: 'manual' });
        return response.status === 400
          ? says.fine('a message without a signature is refused')
          : says.mend(
              `a message to ${webhookUrl} is answered by ${response.status}`,
              'See that the proxy in front passes POST on to the server.',
            );
      },
    },
  ];
}
