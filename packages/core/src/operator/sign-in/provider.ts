/**
 * The provider at which operators sign in, by OpenID Connect: authorization code with PKCE, state and nonce.
 *
 * Source: https://openid.net/specs/openid-connect-core-1_0.html, RFC 7636 (PKCE), RFC 9700 (security of OAuth 2.0)
 */
import { createHash } from 'node:crypto';
import type * as oidc from 'openid-client';
import { Problem, unavailable } from '../../http/problem.ts';
import { type RoleClaims, type RoleRule, roleClaimsOf } from './role-rules.ts';

/** Bound on each of its answers. A person waits for up to four of them. */
const ANSWER_WITHIN_S = 5;
const MAX_ANSWER_BYTES = 1_048_576;
/** How long what the provider says about itself is believed. */
const DESCRIBED_FOR_MS = 3_600_000;
/** How far the provider's clock may be from this machine's. */
const CLOCK_TOLERANCE_S = 30;
const MAX_SUBJECT_CHARACTERS = 255;

export interface ProviderSettings {
  /** Null: nobody signs in at a provider. */
  issuer: string | null;
  clientId: string | null;
  scopes: string;
  rules: readonly RoleRule[];
}

/** The state that a sign-in has to remember between the two requests of the browser. */
export interface SignInAttempt {
  state: string;
  nonce: string;
  verifier: string;
}

/** A person whom the provider has vouched for. */
export interface SignedIn {
  issuer: string;
  subject: string;
  /** Verified; null: none. */
  email: string | null;
  claims: RoleClaims;
}

type Library = typeof oidc;

/** The client's library, which is loaded with the first sign-in. */
const library = (): Promise<Library> => import('openid-client');

export type SignInProvider = ReturnType<typeof createProvider>;

/** @param secret may be another one at any time; null: the provider knows this server as a public client, by PKCE alone */
export function createProvider(
  { issuer, clientId, scopes, rules }: ProviderSettings & { issuer: string; clientId: string },
  { redirectUri, secret, nowMs }: { redirectUri: string; secret(): string | null; nowMs(): number },
) {
  const configured = describedBy({ issuer, clientId, secret, nowMs });

  return {
    /** The name that people know it by. */
    host: new URL(issuer).host,
    issuer,

    /**
     * @returns the provider's address to send the browser to
     * @throws Problem 503 SIGN_IN_UNAVAILABLE
     */
    async begin(): Promise<SignInAttempt & { url: URL }> {
      const client = await library();
      const configuration = await configured().catch((error: unknown) => {
        throw away(error);
      });
      const state = client.randomState();
      const nonce = client.randomNonce();
      const verifier = client.randomPKCECodeVerifier();
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopes,
        state,
        nonce,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      });
      return { state, nonce, verifier, url };
    },

    /**
     * Trades the code for who the person is. The id token's signature, issuer, audience, nonce and times are checked, and so is
     * the state.
     *
     * @param search the query of the address that the provider sent the browser to, with its question mark
     * @throws Problem 400 SIGN_IN_FAILED, 403 SIGN_IN_DECLINED, 503 SIGN_IN_UNAVAILABLE
     */
    async finish(search: string, { state, nonce, verifier }: SignInAttempt): Promise<SignedIn> {
      const client = await library();
      try {
        const configuration = await configured();
        const tokens = await client.authorizationCodeGrant(configuration, new URL(redirectUri + search), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw new Error('an id token was expected');
        const told = await completed(client, configuration, claims, tokens.access_token, rules);
        const roleClaims = roleClaimsOf(told, rules);
        const subject = claims.sub;
        if (subject.length > MAX_SUBJECT_CHARACTERS) throw failed('The subject is too long.');
        return { issuer, subject, email: roleClaims.email?.[0] ?? null, claims: roleClaims };
      } catch (error) {
        return refuse(client, error);
      }
    },
  };
}

/** The provider's description of itself, asked for once for all who wait, and anew after an hour. */
function describedBy({
  issuer,
  clientId,
  secret,
  nowMs,
}: {
  issuer: string;
  clientId: string;
  secret(): string | null;
  nowMs(): number;
}): () => Promise<oidc.Configuration> {
  let described: { untilMs: number; with: string | null; configuration: Promise<oidc.Configuration> } | null =
    null;
  return () => {
    const withSecret = secret();
    const now = nowMs();
    if (described !== null && now < described.untilMs && described.with === withSecret)
      return described.configuration;
    const configuration = discovered(issuer, clientId, withSecret);
    const made = { untilMs: now + DESCRIBED_FOR_MS, with: withSecret, configuration };
    described = made;
    // The next one asks again: a provider that was away is not remembered as such.
    configuration.catch(() => {
      if (described === made) described = null;
    });
    return configuration;
  };
}

async function discovered(
  issuer: string,
  clientId: string,
  secret: string | null,
): Promise<oidc.Configuration> {
  const client = await library();
  const configuration = await client.discovery(
    new URL(issuer),
    clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_S },
    secret === null ? client.None() : undefined,
    {
      timeout: ANSWER_WITHIN_S,
      [client.customFetch]: boundedFetch,
      // `declared.ts` lets no other issuer be without TLS than one on this machine.
      execute: issuer.startsWith('http:') ? [client.allowInsecureRequests] : [],
    },
  );
  const methods = configuration.serverMetadata().token_endpoint_auth_methods_supported;
  // The default of OpenID Connect Discovery is Basic; some providers take the secret in the body alone.
  const authentication =
    secret === null
      ? client.None()
      : methods === undefined || methods.includes('client_secret_basic')
        ? client.ClientSecretBasic(secret)
        : client.ClientSecretPost(secret);
  const made = new client.Configuration(
    configuration.serverMetadata(),
    clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_S },
    authentication,
  );
  made.timeout = ANSWER_WITHIN_S;
  made[client.customFetch] = boundedFetch;
  if (issuer.startsWith('http:')) client.allowInsecureRequests(made);
  // The standard lets a client believe an id token that came over TLS. Its signature is checked here all the same.
  client.enableNonRepudiationChecks(made);
  return made;
}

/** Adds what the id token leaves out and the provider tells when it is asked: many put the e-mail address there alone. */
async function completed(
  client: Library,
  configuration: oidc.Configuration,
  claims: oidc.IDToken,
  accessToken: string,
  rules: readonly RoleRule[],
): Promise<Readonly<Record<string, unknown>>> {
  const wanted = new Set(['email', ...rules.map(({ claim }) => claim)]);
  const isComplete = [...wanted].every((claim) => Object.hasOwn(claims, claim));
  if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
  const more = await client.fetchUserInfo(configuration, accessToken, claims.sub);
  return { ...more, ...claims };
}

/** Reads an answer of the provider up to a bound. */
const boundedFetch: oidc.CustomFetch = async (url, { body, ...options }) => {
  // The library sends forms, and nothing with what is only read.
  const form = body instanceof URLSearchParams ? { body } : {};
  const response = await fetch(url, { ...options, ...form });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  const { status, headers } = response;
  return new Response(bytes === 0 ? null : Buffer.concat(chunks), { status, headers });
};

function failed(reason: string, cause?: unknown): Problem {
  return new Problem(400, 'SIGN_IN_FAILED', `The sign-in did not hold. ${reason} Sign in again.`, { cause });
}

/** Tells a provider that is away from an answer that does not hold. @throws Problem */
function refuse(client: Library, error: unknown): never {
  if (error instanceof Problem) throw error;
  if (error instanceof client.AuthorizationResponseError)
    throw new Problem(
      403,
      'SIGN_IN_DECLINED',
      'The provider did not let this sign-in happen. Sign in again.',
      {
        cause: error,
      },
    );
  if (error instanceof client.ResponseBodyError)
    throw failed('The provider did not take the code: it was used before, or it is too old.', error);
  if (error instanceof client.ClientError && VERIFIED.has(error.code ?? ''))
    throw failed('What the provider sent could not be verified.', error);
  throw away(error);
}

function away(cause: unknown): Problem {
  return unavailable(
    'SIGN_IN_UNAVAILABLE',
    'The provider at which operators sign in gives no answer that can be used. Sign in later, or by a token.',
    10_000,
    {},
    cause,
  );
}

/** The library's codes for an answer that came, and that does not hold. */
const VERIFIED = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
]);
