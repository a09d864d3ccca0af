/**
 * `sign-in-with-x`: a wallet that has paid proves who it is and fetches its stored answer again, without paying.
 * CAIP-122; on EVM chains the message is that of EIP-4361. https://chainagnostic.org/CAIPs/caip-122
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  address as asAddress,
  getBase58Encoder,
  getPublicKeyFromAddress,
  signatureBytes,
  verifySignature,
} from '@solana/kit';
import { isAddress, recoverMessageAddress } from 'viem';
import { createSiweMessage } from 'viem/siwe';
import { z } from 'zod';
import type { Database } from '../../db/connection.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { refuse } from '../on-chain/refusals.ts';

const LIFE_S = 300;
const MAX_HEADER_CHARS = 8_000;

const presented = z.object({
  domain: z.string().max(300),
  address: z.string().max(100),
  statement: z.string().max(500).optional(),
  uri: z.string().max(500),
  version: z.literal('1'),
  chainId: z.string().max(100),
  type: z.enum(['eip191', 'ed25519']).optional(),
  nonce: z.string().max(100),
  issuedAt: z.string().max(50),
  expirationTime: z.string().max(50).optional(),
  notBefore: z.string().max(50).optional(),
  requestId: z.string().max(200).optional(),
  resources: z.array(z.string().max(500)).max(10).optional(),
  signature: z.string().max(300),
});
type SignIn = z.output<typeof presented>;

export interface SignInChallenge {
  /** Everything of `extensions["sign-in-with-x"]` but the three fields of `fresh`. */
  fixed(resourceUrl: string): { supportedChains: unknown[]; schema: unknown; info: Record<string, unknown> };
  /** Times, and a nonce of its own for every challenge. */
  fresh(): { nonce: string; issuedAt: string; expirationTime: string };
  /**
   * Who signed.
   *
   * @param header standard base64 of JSON
   * @throws PaymentRefused SIGN_IN_INVALID with the field that is wrong
   */
  check(header: string, resourceUrl: string): Promise<string>;
  /** Forgets nonces that would be refused for their age anyhow. */
  dropExpired(): Promise<void>;
}

const DROPPED_AT_ONCE = 1_000;

export function createSignIn(parts: {
  baseUrl: string;
  secrets: Secrets;
  sql: Database;
  /** CAIP-2. */
  chains: readonly string[];
  nowMs(): number;
}): SignInChallenge {
  const { baseUrl, sql, nowMs } = parts;
  const { host, origin } = new URL(baseUrl);
  const statement = 'Fetch answers that this wallet has paid for.';

  let newest = { second: -1, nonce: '', times: { issuedAt: '', expirationTime: '' } };
  /** Tells apart the nonces of one second, of this process and others. No secret: whoever signs in signs it. */
  const replica = randomBytes(3).toString('hex');
  let made = 0;

  /** How the nonces of a second begin: every replica recognizes them, and nothing is stored until one is used. */
  function nonceOf(second: number, secret = parts.secrets.current): string {
    const mac = createHmac('sha256', secret.value).update(`sign-in:${second}`).digest('hex').slice(0, 24);
    return `${second.toString(36)}${mac}`;
  }

  function messageOf(signIn: SignIn): string {
    const { domain, uri, nonce, issuedAt, expirationTime, chainId, address } = signIn;
    const reference = chainId.slice(chainId.indexOf(':') + 1);
    if (chainId.startsWith('eip155:') && isAddress(address)) {
      return createSiweMessage({
        address,
        chainId: Number(reference),
        domain,
        nonce,
        uri,
        version: '1',
        issuedAt: new Date(issuedAt),
        ...(signIn.statement === undefined ? {} : { statement: signIn.statement }),
        ...(expirationTime === undefined ? {} : { expirationTime: new Date(expirationTime) }),
        ...(signIn.notBefore === undefined ? {} : { notBefore: new Date(signIn.notBefore) }),
        ...(signIn.requestId === undefined ? {} : { requestId: signIn.requestId }),
        ...(signIn.resources === undefined ? {} : { resources: signIn.resources }),
      });
    }
    const lines = [`${domain} wants you to sign in with your Solana account:`, address, ''];
    if (signIn.statement) lines.push(signIn.statement, '');
    lines.push(
      `URI: ${uri}`,
      'Version: 1',
      `Chain ID: ${reference}`,
      `Nonce: ${nonce}`,
      `Issued At: ${issuedAt}`,
    );
    if (expirationTime) lines.push(`Expiration Time: ${expirationTime}`);
    if (signIn.notBefore) lines.push(`Not Before: ${signIn.notBefore}`);
    if (signIn.requestId) lines.push(`Request ID: ${signIn.requestId}`);
    if (signIn.resources && signIn.resources.length > 0)
      lines.push('Resources:', ...signIn.resources.map((resource) => `- ${resource}`));
    return lines.join('\n');
  }

  async function isSigned(signIn: SignIn): Promise<boolean> {
    try {
      const message = messageOf(signIn);
      if (signIn.chainId.startsWith('eip155:')) {
        const signer = await recoverMessageAddress({ message, signature: signIn.signature as `0x${string}` });
        return signer.toLowerCase() === signIn.address.toLowerCase();
      }
      const key = await getPublicKeyFromAddress(asAddress(signIn.address));
      const signature = signatureBytes(new Uint8Array(getBase58Encoder().encode(signIn.signature)));
      return await verifySignature(key, signature, new TextEncoder().encode(message));
    } catch {
      return false;
    }
  }

  return {
    fixed: (resourceUrl) => ({
      supportedChains: parts.chains.map((chainId) => ({
        chainId,
        type: chainId.startsWith('eip155:') ? 'eip191' : 'ed25519',
      })),
      schema: {},
      info: { domain: host, uri: resourceUrl, version: '1', statement },
    }),

    fresh() {
      const second = Math.floor(nowMs() / 1_000);
      if (newest.second !== second) {
        const times = {
          issuedAt: new Date(second * 1_000).toISOString(),
          expirationTime: new Date((second + LIFE_S) * 1_000).toISOString(),
        };
        newest = { second, nonce: nonceOf(second) + replica, times };
      }
      made += 1;
      return { nonce: newest.nonce + made.toString(36), ...newest.times };
    },

    async check(header, resourceUrl) {
      let json: unknown;
      try {
        if (header.length > MAX_HEADER_CHARS) throw new Error('too long');
        json = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
      } catch {
        throw refuse('SIGN_IN_INVALID', { field: 'SIGN-IN-WITH-X' });
      }
      const parsed = presented.safeParse(json);
      if (!parsed.success)
        throw refuse('SIGN_IN_INVALID', {
          field: parsed.error.issues[0]?.path.join('.') ?? 'SIGN-IN-WITH-X',
        });
      const signIn = parsed.data;
      const wrong = (field: string) => refuse('SIGN_IN_INVALID', { field });
      if (signIn.domain !== host) throw wrong('domain');
      if (signIn.uri !== resourceUrl && signIn.uri !== origin) throw wrong('uri');
      if (!parts.chains.includes(signIn.chainId)) throw wrong('chainId');
      const issuedAtMs = Date.parse(signIn.issuedAt);
      const second = Math.floor(issuedAtMs / 1_000);
      if (
        !Number.isFinite(issuedAtMs) ||
        issuedAtMs > nowMs() + 1_000 ||
        issuedAtMs < nowMs() - LIFE_S * 1_000
      )
        throw wrong('issuedAt');
      const isOurs = parts.secrets.all.some((secret) => {
        const expected = Buffer.from(nonceOf(second, secret));
        const given = Buffer.from(signIn.nonce).subarray(0, expected.length);
        return given.length === expected.length && timingSafeEqual(given, expected);
      });
      if (!isOurs) throw wrong('nonce');
      if (!/^[a-z0-9]+$/.test(signIn.nonce)) throw wrong('nonce');
      if (!(await isSigned(signIn))) throw wrong('signature');
      const payer = signIn.chainId.startsWith('eip155:') ? signIn.address.toLowerCase() : signIn.address;
      const used = await sql`
        insert into sign_in_nonces (nonce, address, expires_at)
        values (${signIn.nonce}, ${payer}, ${new Date(issuedAtMs + 2 * LIFE_S * 1_000).toISOString()})
        on conflict do nothing returning 1`;
      if (used.length === 0) throw wrong('nonce');
      return payer;
    },

    async dropExpired() {
      for (let dropped = DROPPED_AT_ONCE; dropped === DROPPED_AT_ONCE; ) {
        const { count } = await sql`
          delete from sign_in_nonces where (nonce, address) in (
            select nonce, address from sign_in_nonces where expires_at <= ${new Date(nowMs()).toISOString()}
            order by expires_at limit ${DROPPED_AT_ONCE} for update skip locked
          )`;
        dropped = count;
      }
    },
  };
}
