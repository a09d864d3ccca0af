/**
 * Signatures of the agent card: JWS (RFC 7515) over the card in its canonical form (RFC 8785), by a key that follows from the
 * server's secret. https://a2a-protocol.org, section 8.4
 *
 * A signature of ECDSA is made here as RFC 6979 says, so that all replicas publish the same card, with the same `ETag`.
 */
import { createECDH, createHash, hkdfSync } from 'node:crypto';
import { mapHashToField } from '@noble/curves/abstract/modular';
import { p256 } from '@noble/curves/p256';
import canonicalize from 'canonicalize';
import type { Secret, Secrets } from '../secrets/secrets.ts';

export const CARD_KEYS_PATH = '/.well-known/jwks.json';

/** The form of a key in a JWK set (RFC 7517). */
export interface PublishedKey {
  kty: 'EC';
  crv: 'P-256';
  x: string;
  y: string;
  alg: 'ES256';
  use: 'sig';
  kid: string;
}

/** A signature as A2A writes it into a card. */
export interface CardSignature {
  protected: string;
  signature: string;
}

export interface CardSigner {
  /** The keys of every version of the secret, so that what an older one signed verifies as long as that is given. */
  keys: readonly PublishedKey[];
  /** @param forms what is signed, each by a signature of its own @param keysAt where a verifier may look for the key */
  sign(forms: readonly object[], keysAt: string): CardSignature[];
}

export function createCardSigner({ current, all }: Secrets): CardSigner {
  const keys = all.map((version) => keyOf(privateKeyOf(version)));
  const privateKey = privateKeyOf(current);
  const { kid, alg } = keyOf(privateKey);
  return {
    keys,
    sign: (forms, keysAt) =>
      forms.map((form) => {
        const header = base64url(canonical({ alg, kid, typ: 'JOSE', jku: keysAt }));
        const signed = createHash('sha256')
          .update(`${header}.${base64url(canonical(form))}`)
          .digest();
        const signature = p256.sign(signed, privateKey).toCompactRawBytes();
        return { protected: header, signature: base64url(signature) };
      }),
  };
}

/** Takes out what is empty, at any depth: so the published SDKs of A2A read a card before they verify it. */
export function withoutEmpty(value: unknown): unknown {
  if (value === '' || value === null) return undefined;
  if (typeof value !== 'object' || value === undefined) return value;
  if (Array.isArray(value)) {
    const left = value.map(withoutEmpty).filter((each) => each !== undefined);
    return left.length === 0 ? undefined : left;
  }
  const left = Object.entries(value).flatMap(([name, member]) => {
    const kept = withoutEmpty(member);
    return kept === undefined ? [] : [[name, kept] as const];
  });
  return left.length === 0 ? undefined : Object.fromEntries(left);
}

function privateKeyOf({ value }: Secret): Uint8Array {
  // Longer than the key, so that no key is likelier than another.
  const derived = new Uint8Array(hkdfSync('sha256', value, 'farebox', 'agent card', 48));
  return mapHashToField(derived, p256.CURVE.n);
}

function keyOf(privateKey: Uint8Array): PublishedKey {
  // By OpenSSL: the tables that signatures are made with take a tenth of a second, and a start makes none.
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(privateKey);
  const point = pair.getPublicKey();
  const [x, y] = [base64url(point.subarray(1, 33)), base64url(point.subarray(33))];
  const key = { kty: 'EC', crv: 'P-256', x, y } as const;
  // The name of a key is its thumbprint (RFC 7638).
  const kid = createHash('sha256').update(canonical(key)).digest('base64url');
  return { ...key, alg: 'ES256', use: 'sig', kid };
}

function canonical(value: object): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error('what is signed is no JSON');
  return text;
}

const base64url = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64url');
