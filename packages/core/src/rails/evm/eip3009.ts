/**
 * EIP-3009 `transferWithAuthorization`: what the payer signs, and the call that the chain gets. Encoded by hand because
 * it is done for every payment; `eip3009.test.ts` compares it with viem's general encoders.
 * https://eips.ethereum.org/EIPS/eip-3009  https://eips.ethereum.org/EIPS/eip-712
 */
import { keccak_256 } from '@noble/hashes/sha3';
import type { EvmNetwork } from './network.ts';

export type Hex = `0x${string}`;

export interface Authorization {
  from: Hex;
  to: Hex;
  /** In the asset's base units. */
  value: bigint;
  /** Seconds since 1970; the chain's time must be later. */
  validAfter: bigint;
  /** Seconds since 1970; the chain's time must be earlier. */
  validBefore: bigint;
  /** 32 bytes. The asset takes each (from, nonce) once. */
  nonce: Hex;
}

/** An authorization as JSON: numbers as decimal strings. */
export type AuthorizationText = Record<keyof Authorization, string>;

export function textOf(authorization: Authorization): AuthorizationText {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    from,
    to,
    value: String(value),
    validAfter: String(validAfter),
    validBefore: String(validBefore),
    nonce,
  };
}

/** An authorization from its JSON form. */
export function authorizationOf(text: AuthorizationText): Authorization {
  return {
    from: text.from as Hex,
    to: text.to as Hex,
    value: BigInt(text.value),
    validAfter: BigInt(text.validAfter),
    validBefore: BigInt(text.validBefore),
    nonce: text.nonce as Hex,
  };
}

/** What the asset accepts once, whichever rail presents it. @param network CAIP-2 */
export function identityOf(
  { network, asset }: { network: string; asset: string },
  { from, nonce }: Pick<AuthorizationText, 'from' | 'nonce'>,
): string {
  return `${network}:${asset.toLowerCase()}:${from}:${nonce}`;
}

const text = (value: string) => keccak_256(new TextEncoder().encode(value));
const DOMAIN_TYPE = text(
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
);
const TRANSFER_TYPE = text(
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
);

/** `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)` */
export const SELECTOR_VRS = '0xe3ee160e';
/** `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)` */
export const SELECTOR_BYTES = '0xcf092995';
/** `AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)` */
export const TOPIC_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** `AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)` */
export const TOPIC_CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';
/** `Transfer(address indexed from, address indexed to, uint256 value)` */
export const TOPIC_TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** `authorizationState(address,bytes32)` */
export const SELECTOR_STATE = '0xe94a0102';

function word(target: Buffer, at: number, value: bigint): void {
  target.write(value.toString(16).padStart(64, '0'), at, 'hex');
}

const domains = new WeakMap<EvmNetwork, Buffer>();

function domainSeparator(network: EvmNetwork): Buffer {
  let separator = domains.get(network);
  if (separator === undefined) {
    const encoded = Buffer.alloc(160);
    encoded.set(DOMAIN_TYPE, 0);
    encoded.set(text(network.domain.name), 32);
    encoded.set(text(network.domain.version), 64);
    word(encoded, 96, BigInt(network.chainId));
    word(encoded, 128, BigInt(network.asset));
    separator = Buffer.from(keccak_256(encoded));
    domains.set(network, separator);
  }
  return separator;
}

/** The 32 bytes that the payer signs. */
export function authorizationDigest(network: EvmNetwork, authorization: Authorization): Buffer {
  const struct = Buffer.alloc(224);
  struct.set(TRANSFER_TYPE, 0);
  writeWords(struct, 32, authorization);
  const preimage = Buffer.alloc(66);
  preimage[0] = 0x19;
  preimage[1] = 0x01;
  preimage.set(domainSeparator(network), 2);
  preimage.set(keccak_256(struct), 34);
  return Buffer.from(keccak_256(preimage));
}

/** The call that makes the asset move the money, for a signature of any length. */
export function transferCalldata(authorization: Authorization, signature: Hex): Hex {
  const bytes = Buffer.from(signature.slice(2), 'hex');
  if (bytes.length === 65) {
    const data = Buffer.alloc(9 * 32);
    writeWords(data, 0, authorization);
    const v = bytes.readUInt8(64);
    word(data, 192, BigInt(v < 27 ? v + 27 : v));
    bytes.copy(data, 224, 0, 64);
    return `${SELECTOR_VRS}${data.toString('hex')}`;
  }
  const data = Buffer.alloc(8 * 32 + Math.ceil(bytes.length / 32) * 32);
  writeWords(data, 0, authorization);
  word(data, 192, 224n);
  word(data, 224, BigInt(bytes.length));
  bytes.copy(data, 256);
  return `${SELECTOR_BYTES}${data.toString('hex')}`;
}

/** The call that asks whether (from, nonce) was used or cancelled. */
export function stateCalldata({ from, nonce }: Pick<Authorization, 'from' | 'nonce'>): Hex {
  return `${SELECTOR_STATE}${topicOf(from).slice(2)}${nonce.slice(2)}`;
}

/** An address as an event's topic. */
export function topicOf(address: Hex): Hex {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
}

function writeWords(target: Buffer, at: number, authorization: Authorization): void {
  word(target, at, BigInt(authorization.from));
  word(target, at + 32, BigInt(authorization.to));
  word(target, at + 64, authorization.value);
  word(target, at + 96, authorization.validAfter);
  word(target, at + 128, authorization.validBefore);
  target.write(authorization.nonce.slice(2), at + 160, 'hex');
}
