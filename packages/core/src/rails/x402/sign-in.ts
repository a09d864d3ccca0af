/**
 * `sign-in-with-x`: a wallet that has paid proves who it is and fetches its stored answer again, without paying.
 * CAIP-122; on EVM chains the message is that of EIP-4361. https://chainagnostic.org/CAIPs/caip-122
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../db/connection.ts';
import type { Secrets } from '../../secrets/secrets.ts';
import { refuse } from '../on-chain/refusals.ts';
import { isEvm, isSigned, payerIn, readSignIn, type SignIn } from './sign-in-message.ts';

const LIFE_S = 300;
const DROPPED_AT_ONCE = 1_000;
const STATEMENT = 'Fetch answers that this wallet has paid for.';

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

interface SignInParts {
  baseUrl: string;
  secrets: Secrets;
  sql: Database;
  /** CAIP-2. */
  chains: readonly string[];
  nowMs(): number;
}

export function createSignIn(parts: SignInParts): SignInChallenge {
  return new SignInWithWallet(parts);
}

class SignInWithWallet implements SignInChallenge {
  readonly #parts: SignInParts;
  readonly #host: string;
  readonly #origin: string;
  /** Tells apart the nonces of one second, of this process and others. No secret: whoever signs in signs it. */
  readonly #replica = randomBytes(3).toString('hex');
  #made = 0;
  /** What all challenges of a second share. */
  #newest = { second: -1, nonce: '', times: { issuedAt: '', expirationTime: '' } };

  constructor(parts: SignInParts) {
    const { host, origin } = new URL(parts.baseUrl);
    this.#parts = parts;
    this.#host = host;
    this.#origin = origin;
  }

  fixed(resourceUrl: string) {
    return {
      supportedChains: this.#parts.chains.map((chainId) => ({
        chainId,
        type: chainId.startsWith('eip155:') ? 'eip191' : 'ed25519',
      })),
      schema: {},
      info: { domain: this.#host, uri: resourceUrl, version: '1', statement: STATEMENT },
    };
  }

  fresh() {
    const second = Math.floor(this.#parts.nowMs() / 1_000);
    if (this.#newest.second !== second) {
      const times = {
        issuedAt: new Date(second * 1_000).toISOString(),
        expirationTime: new Date((second + LIFE_S) * 1_000).toISOString(),
      };
      this.#newest = { second, nonce: this.#nonceOf(second) + this.#replica, times };
    }
    this.#made += 1;
    return { nonce: this.#newest.nonce + this.#made.toString(36), ...this.#newest.times };
  }

  async check(header: string, resourceUrl: string): Promise<string> {
    const signIn = readSignIn(header);
    this.#checkPlace(signIn, resourceUrl);
    this.#checkTime(signIn);
    if (!this.#isOurNonce(signIn)) throw wrong('nonce');
    if (!(await isSigned(signIn))) throw wrong('signature');
    await this.#useUp(signIn);
    return payerIn(signIn);
  }

  async dropExpired(): Promise<void> {
    const { sql, nowMs } = this.#parts;
    for (let dropped = DROPPED_AT_ONCE; dropped === DROPPED_AT_ONCE; ) {
      const { count } = await sql`
        delete from sign_in_nonces where (nonce, address) in (
          select nonce, address from sign_in_nonces where expires_at <= ${new Date(nowMs()).toISOString()}
          order by expires_at limit ${DROPPED_AT_ONCE} for update skip locked
        )`;
      dropped = count;
    }
  }

  /** Refuses what was signed for another shop, resource or chain. */
  #checkPlace({ domain, uri, chainId }: SignIn, resourceUrl: string): void {
    if (domain !== this.#host) throw wrong('domain');
    if (uri !== resourceUrl && uri !== this.#origin) throw wrong('uri');
    if (!this.#parts.chains.includes(chainId)) throw wrong('chainId');
  }

  /** A signer may have said for how long the message is good: nobody may use it before or after. */
  #checkTime(signIn: SignIn): void {
    const { issuedAt } = signIn;
    // In Solana's message an empty time is none.
    const said = (time: string | undefined) => (time === '' && !isEvm(signIn) ? undefined : time);
    const [notBefore, expirationTime] = [said(signIn.notBefore), said(signIn.expirationTime)];
    const nowMs = this.#parts.nowMs();
    const issuedAtMs = Date.parse(issuedAt);
    if (!(issuedAtMs <= nowMs + 1_000 && issuedAtMs >= nowMs - LIFE_S * 1_000)) throw wrong('issuedAt');
    if (notBefore !== undefined && !(Date.parse(notBefore) <= nowMs + 1_000)) throw wrong('notBefore');
    if (expirationTime !== undefined && !(Date.parse(expirationTime) >= nowMs)) throw wrong('expirationTime');
  }

  /** Whether it is one of the nonces that were given out in the second of its issue, whatever replica gave it. */
  #isOurNonce({ nonce, issuedAt }: SignIn): boolean {
    const second = Math.floor(Date.parse(issuedAt) / 1_000);
    const isOurs = this.#parts.secrets.all.some((secret) => {
      const expected = Buffer.from(this.#nonceOf(second, secret));
      const given = Buffer.from(nonce).subarray(0, expected.length);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    return isOurs && /^[a-z0-9]+$/.test(nonce);
  }

  /** Takes each nonce of a payer once. @throws PaymentRefused when it was used */
  async #useUp(signIn: SignIn): Promise<void> {
    const expiresAt = new Date(Date.parse(signIn.issuedAt) + 2 * LIFE_S * 1_000).toISOString();
    const used = await this.#parts.sql`
      insert into sign_in_nonces (nonce, address, expires_at) values (${signIn.nonce}, ${payerIn(signIn)}, ${expiresAt})
      on conflict do nothing returning 1`;
    if (used.length === 0) throw wrong('nonce');
  }

  /** How the nonces of a second begin. Every replica recognizes them, and nothing is stored until one is used. */
  #nonceOf(second: number, secret = this.#parts.secrets.current): string {
    const mac = createHmac('sha256', secret.value).update(`sign-in:${second}`).digest('hex').slice(0, 24);
    return `${second.toString(36)}${mac}`;
  }
}

function wrong(field: string) {
  return refuse('SIGN_IN_INVALID', { field });
}
