/** The arguments of a decoded call, read by their place and checked for their kind. */
import { type Address, getAddress, type Hex, isAddress, isHex } from 'viem';

export type Values = readonly unknown[];

export function addressAt(values: Values, index: number): Address {
  return asAddress(values[index]);
}

export function amountAt(values: Values, index: number): bigint {
  return asAmount(values[index]);
}

export function bytesAt(values: Values, index: number): Hex {
  return asBytes(values[index]);
}

export function listAt(values: Values, index: number): readonly unknown[] {
  const value = values[index];
  if (!Array.isArray(value)) throw new TypeError('no list');
  return value;
}

export function asAddress(value: unknown): Address {
  if (typeof value !== 'string' || !isAddress(value, { strict: false })) throw new TypeError('no address');
  return getAddress(value.toLowerCase());
}

/** Also from numbers and from text, as JSON writes amounts. */
export function asAmount(value: unknown): bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === 'string' && /^(-?\d{1,78}|0x[0-9a-fA-F]{1,64})$/.test(value)) return BigInt(value);
  throw new TypeError('no amount');
}

export function asBytes(value: unknown): Hex {
  if (!isHex(value)) throw new TypeError('no bytes');
  return value;
}

/** A field of a decoded tuple or of a message. */
export function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}
