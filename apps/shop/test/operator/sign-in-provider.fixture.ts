/**
 * A provider of OpenID Connect on a socket, for tests: discovery, authorization with PKCE, tokens, keys and user info, as the
 * standard has them. `forge` lets it lie, as an attacker or a broken provider would.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
} from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export const CLIENT = { id: 'farebox-of-the-tests', secret: 'a-client-secret-of-the-tests' };

/** What it tells about a person. */
export type Told = Record<string, unknown> & { sub: string };

interface Forged {
  header?: Record<string, unknown>;
  claims?: Record<string, unknown>;
  /** Signs by another key than the one that it publishes. */
  otherKey?: boolean;
  /** `alg: none`: no signature at all. */
  unsigned?: boolean;
}

interface Grant {
  redirectUri: string;
  challenge: string;
  nonce: string | null;
  told: Told;
}

export interface SignInProviderDouble {
  issuer: string;
  /** Who is signed in there: the next authorization is theirs, without a page. Null: they decline. */
  person: Told | null;
  /** The names of claims that only the user info tells. */
  onlyUserInfo: string[];
  forge: Forged;
  /** The secrets that it takes from the client. */
  readonly clientSecrets: Set<string>;
  /** The client's secret of the newest code that was traded; null: none was. */
  cameBy: string | null;
  /** Accepts connections and answers nothing. */
  silent: boolean;
  /** Takes a code as often as it is sent, which no provider should. */
  codesLast: boolean;
  /** Every path that was asked for. */
  readonly asked: string[];
  stop(): Promise<void>;
}

const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

export async function startSignInProvider(): Promise<SignInProviderDouble> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const grants = new Map<string, Grant>();
  const tokens = new Map<string, Told>();
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const issuer = `http://127.0.0.1:${address.port}`;
  const double: SignInProviderDouble = {
    issuer,
    person: null,
    onlyUserInfo: [],
    forge: {},
    clientSecrets: new Set([CLIENT.secret]),
    cameBy: null,
    silent: false,
    codesLast: false,
    asked: [],
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer);
    double.asked.push(url.pathname);
    if (double.silent) return;
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return void json(200, described());
      case '/keys':
        return void json(200, { keys: [jwkOf(publicKey)] });
      case '/authorize':
        return void response.writeHead(302, { location: authorized(url.searchParams) }).end();
      case '/token':
        return void json(...traded(request, new URLSearchParams(await bodyOf(request))));
      case '/userinfo': {
        const told = tokens.get((request.headers.authorization ?? '').replace(/^Bearer /i, ''));
        return void (told === undefined ? json(401, { error: 'invalid_token' }) : json(200, told));
      }
      default:
        return void json(404, {});
    }
  }

  function described() {
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      jwks_uri: `${issuer}/keys`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic'],
    };
  }

  /** The address that the browser is sent back to. */
  function authorized(query: URLSearchParams): string {
    const back = new URL(query.get('redirect_uri') ?? '');
    back.searchParams.set('state', query.get('state') ?? '');
    const isAsItShould =
      query.get('client_id') === CLIENT.id &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256' &&
      (query.get('scope') ?? '').split(' ').includes('openid');
    if (double.person === null || !isAsItShould) {
      back.searchParams.set('error', isAsItShould ? 'access_denied' : 'invalid_request');
      return back.href;
    }
    const code = randomUUID();
    grants.set(code, {
      redirectUri: query.get('redirect_uri') ?? '',
      challenge: query.get('code_challenge') ?? '',
      nonce: query.get('nonce'),
      told: double.person,
    });
    back.searchParams.set('code', code);
    return back.href;
  }

  function traded(request: IncomingMessage, form: URLSearchParams): [status: number, body: unknown] {
    // RFC 6749, 2.3.1: both are form-encoded before they are joined.
    const [, basic = ''] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const client = Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
    const [id, clientSecret = ''] = client;
    if (client.length !== 2 || id !== CLIENT.id || !double.clientSecrets.has(clientSecret))
      return [401, { error: 'invalid_client' }];
    double.cameBy = clientSecret;
    const code = form.get('code') ?? '';
    const grant = grants.get(code);
    if (!double.codesLast) grants.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (
      grant === undefined ||
      grant.challenge !== challenge ||
      grant.redirectUri !== form.get('redirect_uri')
    )
      return [400, { error: 'invalid_grant' }];
    const accessToken = randomUUID();
    tokens.set(accessToken, grant.told);
    return [
      200,
      { access_token: accessToken, token_type: 'Bearer', expires_in: 60, id_token: idTokenOf(grant) },
    ];
  }

  function idTokenOf({ told, nonce }: Grant): string {
    const nowS = Math.floor(Date.now() / 1_000);
    const { forge } = double;
    const inToken = Object.entries(told).filter(([name]) => !double.onlyUserInfo.includes(name));
    const claims = { iss: issuer, aud: CLIENT.id, iat: nowS, exp: nowS + 60, nonce };
    const header = { alg: forge.unsigned === true ? 'none' : 'RS256', kid: 'one', ...forge.header };
    const signed = `${text(header)}.${text({ ...claims, ...Object.fromEntries(inToken), ...forge.claims })}`;
    if (forge.unsigned === true) return `${signed}.`;
    const signature = sign('sha256', Buffer.from(signed), forge.otherKey === true ? other : privateKey);
    return `${signed}.${signature.toString('base64url')}`;
  }
  return double;
}

function jwkOf(key: KeyObject): object {
  return {
    ...createPublicKey(key.export({ type: 'spki', format: 'pem' })).export({ format: 'jwk' }),
    kid: 'one',
    alg: 'RS256',
    use: 'sig',
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
