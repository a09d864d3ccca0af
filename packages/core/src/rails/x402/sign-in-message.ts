/** What a wallet signs to sign in: CAIP-122, which on EVM chains is the message of EIP-4361. */
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
import { refuse } from '../on-chain/refusals.ts';

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
export type SignIn = z.output<typeof presented>;

/** Reads the header, standard base64 of JSON. @throws PaymentRefused SIGN_IN_INVALID with the field that is wrong */
export function readSignIn(header: string): SignIn {
  let json: unknown;
  try {
    if (header.length > MAX_HEADER_CHARS) throw new Error('too long');
    json = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  } catch {
    throw refuse('SIGN_IN_INVALID', { field: 'SIGN-IN-WITH-X' });
  }
  const parsed = presented.safeParse(json);
  if (parsed.success) return parsed.data;
  throw refuse('SIGN_IN_INVALID', { field: parsed.error.issues[0]?.path.join('.') ?? 'SIGN-IN-WITH-X' });
}

/** Whether the address that it names signed this message. */
export async function isSigned(signIn: SignIn): Promise<boolean> {
  try {
    if (isEvm(signIn)) {
      const signature = signIn.signature as `0x${string}`;
      const signer = await recoverMessageAddress({ message: messageOf(signIn), signature });
      return signer.toLowerCase() === signIn.address.toLowerCase();
    }
    const key = await getPublicKeyFromAddress(asAddress(signIn.address));
    const signature = signatureBytes(new Uint8Array(getBase58Encoder().encode(signIn.signature)));
    return await verifySignature(key, signature, new TextEncoder().encode(messageOf(signIn)));
  } catch {
    return false;
  }
}

/** The signer by the name under which its payments stand. */
export function payerIn(signIn: SignIn): string {
  return isEvm(signIn) ? signIn.address.toLowerCase() : signIn.address;
}

export function isEvm({ chainId }: SignIn): boolean {
  return chainId.startsWith('eip155:');
}

/** @throws for what cannot stand in such a message */
function messageOf(signIn: SignIn): string {
  const reference = signIn.chainId.slice(signIn.chainId.indexOf(':') + 1);
  return isEvm(signIn) && isAddress(signIn.address)
    ? evmMessage(signIn, signIn.address, Number(reference))
    : solanaMessage(signIn, reference);
}

function evmMessage(signIn: SignIn, address: `0x${string}`, chainId: number): string {
  const { domain, uri, nonce, issuedAt, expirationTime, notBefore } = signIn;
  return createSiweMessage({
    address,
    chainId,
    domain,
    nonce,
    uri,
    version: '1',
    issuedAt: new Date(issuedAt),
    ...(signIn.statement === undefined ? {} : { statement: signIn.statement }),
    ...(expirationTime === undefined ? {} : { expirationTime: new Date(expirationTime) }),
    ...(notBefore === undefined ? {} : { notBefore: new Date(notBefore) }),
    ...(signIn.requestId === undefined ? {} : { requestId: signIn.requestId }),
    ...(signIn.resources === undefined ? {} : { resources: signIn.resources }),
  });
}

function solanaMessage(signIn: SignIn, reference: string): string {
  const { domain, address, uri, nonce, issuedAt, expirationTime } = signIn;
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
