import { z } from 'zod';
import { declare, isTooRegular, list, whole } from '../declared.ts';
import { usdToMicros } from '../ledger/money.ts';
import { OPERATOR_BOOKS } from './books-rules.ts';
import { OPERATOR_PEOPLE } from './personal-data.ts';
import { roleRule } from './sign-in/role-rules.ts';

/** Whether what goes to an address and comes from there is read by nobody on the way. */
function isPrivate(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || ['127.0.0.1', '[::1]', 'localhost'].includes(hostname);
}

export const OPERATOR = declare({
  name: 'operator',
  books: OPERATOR_BOOKS,
  people: OPERATOR_PEOPLE,
  variables: {
    tokens: {
      name: 'ADMIN_TOKENS',
      describe:
        'Who may open `/admin` by a token: `name:token`, comma-separated, each token at least 24 characters. A token has the role admin. Empty, and without `ADMIN_OIDC_ISSUER`: there is no such page',
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
        'A refund or grant above this many USD waits until a second operator agrees, where `ADMIN_TOKENS` names several or operators sign in at a provider',
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
    oidcIssuer: {
      name: 'ADMIN_OIDC_ISSUER',
      describe:
        'The provider at which operators sign in (OpenID Connect), such as `https://accounts.example.com`. `PUBLIC_URL` with `/admin/signed-in` behind it is the address to register there. Empty: by tokens alone',
      shape: z.url({ protocol: /^https?$/ }).refine(isPrivate, 'must be https, or http on this machine'),
      fallback: null,
    },
    oidcClientId: {
      name: 'ADMIN_OIDC_CLIENT_ID',
      describe: 'The id under which the provider knows this server',
      shape: z.string().max(300),
      fallback: null,
    },
    oidcClientSecret: {
      name: 'ADMIN_OIDC_CLIENT_SECRET',
      describe:
        'The secret that goes with that id. Empty: a public client, which proves itself by PKCE alone',
      shape: z.string().min(8).max(2_000),
      fallback: null,
      secret: true,
      renewed: true,
    },
    oidcScopes: {
      name: 'ADMIN_OIDC_SCOPES',
      describe: 'What the provider is asked to tell, separated by spaces; `openid` is among it',
      shape: z
        .string()
        .regex(
          /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/,
          'must be scopes, separated by spaces',
        )
        .refine((scopes) => scopes.split(' ').includes('openid'), 'must name openid'),
      fallback: 'openid email profile',
    },
    roles: {
      name: 'ADMIN_ROLES',
      describe:
        'Who has which role (`read`, `support`, `money`, `admin`) after signing in at the provider, by what it tells: `email=ann@example.com:admin,groups=finance:money`. The greatest that fits counts; who fits none is not let in',
      shape: list(roleRule, 200),
      fallback: '',
    },
    sessionIdleMinutes: {
      name: 'ADMIN_SESSION_IDLE_MINUTES',
      describe: 'An operator’s session ends after so many minutes without a request',
      shape: whole(5, 1_440),
      fallback: '30',
    },
    sessionHours: {
      name: 'ADMIN_SESSION_HOURS',
      describe: 'An operator’s session ends so many hours after the sign-in, whatever was asked',
      shape: whole(1, 168),
      fallback: '12',
    },
    sessionRetentionDays: {
      name: 'ADMIN_SESSION_RETENTION_DAYS',
      describe: 'How many days after its end an operator’s session is kept, with its address and browser',
      shape: whole(1, 3_650),
      fallback: '90',
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
  problems({ tokens = [], serviceCosts = [], roles = [], ...settings }, { production }) {
    const { oidcIssuer = null, oidcClientId = null } = settings;
    return [
      ...(oidcIssuer !== null && oidcClientId === null
        ? ['ADMIN_OIDC_CLIENT_ID: is needed beside ADMIN_OIDC_ISSUER']
        : []),
      ...(oidcIssuer === null && oidcClientId !== null
        ? ['ADMIN_OIDC_ISSUER: is needed beside ADMIN_OIDC_CLIENT_ID']
        : []),
      ...(oidcIssuer !== null && roles.length === 0
        ? ['ADMIN_ROLES: must give somebody a role, since operators sign in at ADMIN_OIDC_ISSUER']
        : []),
      ...(oidcIssuer !== null && tokens.length === 0 && !roles.some(({ role }) => role === 'admin')
        ? ['ADMIN_ROLES: must give somebody the role admin, since there are no ADMIN_TOKENS']
        : []),
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
