import { z } from 'zod';
import { declare, isTooRegular, list } from '../declared.ts';
import { usdToMicros } from '../ledger/money.ts';
import { OPERATOR_BOOKS } from './books-rules.ts';

export const OPERATOR = declare({
  name: 'operator',
  books: OPERATOR_BOOKS,
  variables: {
    tokens: {
      name: 'ADMIN_TOKENS',
      describe:
        'Who may open `/admin`: `name:token`, comma-separated, each token at least 24 characters. Empty: there is no such page',
      shape: list(
        z
          .string()
          .regex(
            /^[\w.@-]{1,60}:[\x21-\x7e]{24,200}$/,
            'must be name:token, each token at least 24 characters',
          )
          .transform((value) => {
            const at = value.indexOf(':');
            return { name: value.slice(0, at), token: value.slice(at + 1) };
          }),
      ),
      fallback: '',
      secret: true,
      renewed: true,
    },
    secondAboveMicros: {
      name: 'ADMIN_SECOND_ABOVE_USD',
      describe:
        'A refund or grant above this many USD waits until a second operator agrees, where `ADMIN_TOKENS` names several',
      shape: z.string().transform((value, context) => {
        try {
          const micros = usdToMicros(value);
          if (micros >= 0n) return micros;
        } catch {
          // said below
        }
        context.addIssue({ code: 'custom', message: 'must be an amount in USD' });
        return z.NEVER;
      }),
      fallback: '50',
    },
    serviceCosts: {
      name: 'SERVICE_COSTS_USD',
      describe:
        'What one call costs you, in USD by service: `ai-inference=0.012,token-price=0.001`. `/admin` then shows the margin; a service that is not named costs nothing, or what nobody knows where it asks a source that costs money',
      shape: list(
        z
          .string()
          .regex(/^[a-z0-9]+(-[a-z0-9]+)*=\d{1,6}(\.\d{1,6})?$/, 'must be service=USD, such as ping=0.001')
          .transform((value) => {
            const at = value.indexOf('=');
            return { service: value.slice(0, at), costMicros: usdToMicros(value.slice(at + 1)) };
          }),
      ),
      fallback: '',
    },
  },
  problems({ tokens = [], serviceCosts = [] }, { production }) {
    return [
      // A right token is let in however many wrong ones came before, so it must be none that can be guessed.
      ...(production && tokens.some(({ token }) => isTooRegular(token, 8))
        ? ['ADMIN_TOKENS: a token is too regular to be a secret']
        : []),
      ...(new Set(serviceCosts.map(({ service }) => service)).size < serviceCosts.length
        ? ['SERVICE_COSTS_USD: must name each service once']
        : []),
      ...(new Set(tokens.map(({ name }) => name)).size < tokens.length
        ? ['ADMIN_TOKENS: must name everybody once']
        : []),
      ...(new Set(tokens.map(({ token }) => token)).size < tokens.length
        ? ['ADMIN_TOKENS: must give everybody a token of their own']
        : []),
    ];
  },
});
