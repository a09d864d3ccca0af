/** Reads a caller's request: a wallet, an amount, a way. Whatever is wrong is told with the field and what would be right. */

import { type FieldIssue, Problem } from '@farebox/core/http/problem';
import { type Address, getAddress, isAddress, zeroAddress } from 'viem';
import type { Fixed } from './fixed.ts';

export const PRESETS_USD = [10, 50, 100, 250, 1000] as const;
const MICROS_IN_USD = 1_000_000n;
/** So that every figure fits what protocols count in, with room. */
const MAX_USD = 1_000_000_000n;
const AMOUNT = /^(?<whole>\d{1,10})(?:\.(?<part>\d{1,6}))?$/;

export type Mode = 'standard' | 'permit';
/**
 * The ways out: for USDC with all, for what USDC can be had now, with all for their part of what can be read, or with their part
 * of each position itself; of the positions also without what a protocol does not hand over.
 */
export const WAYS_OUT = ['all', 'available', 'partly', 'in-kind', 'in-kind-partly'] as const;
export type Leaving = (typeof WAYS_OUT)[number];

/** Addresses up to here are for precompiled contracts (EIP-1352): they have no code to be warned about. */
const LAST_RESERVED = 0xffffn;

type Query = Readonly<Record<string, unknown>>;

/** A 400 that says what to change and shows a request that is right. */
export function badRequest(message: string, fields: readonly FieldIssue[], example: string): Problem {
  return new Problem(400, 'INVALID_REQUEST', message, { details: { success: false, fields, example } });
}

/**
 * A wallet's address: with its checksum (EIP-55), or in letters of one size.
 *
 * @param field where it was given
 * @throws Problem 400
 */
export function readWallet(value: unknown, field: string, fixed: Fixed, example: string): Address {
  const refuse = (message: string) => {
    throw badRequest(`${field} ${message}`, [{ field, message }], example);
  };
  if (typeof value !== 'string' || value === '')
    return refuse('is missing: give the address of the wallet, 0x and 40 hex digits.');
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) return refuse('must be one address: 0x and 40 hex digits.');
  const digits = value.slice(2);
  const mixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (mixed && !isAddress(value, { strict: true }))
    return refuse('has a wrong checksum (EIP-55): a digit may be mistyped. Copy the address anew.');
  const address = getAddress(value.toLowerCase());
  if (address === zeroAddress) return refuse('is the zero address, which nobody has the key of.');
  if (BigInt(address) <= LAST_RESERVED)
    return refuse('is an address that the chain keeps for its own functions, which nobody has the key of.');
  const { vault, permitDeposit, usdc, aavePool, aToken, comet, metaMorpho } = fixed;
  if ([vault, permitDeposit, usdc, aavePool, aToken, comet, metaMorpho].includes(address))
    return refuse('is a contract of the vault, which could never take the shares out again.');
  return address;
}

/**
 * How much: `preset` or `amount`, one of the two.
 *
 * @returns USDC units
 * @throws Problem 400
 */
export function readAmount({ preset, amount }: Query, example: string): bigint {
  const presets = PRESETS_USD.join(', ');
  if (preset !== undefined && amount !== undefined)
    throw badRequest(
      'Give preset or amount, not both.',
      [{ field: 'amount', message: 'leave it out, or leave preset out' }],
      example,
    );
  if (preset !== undefined) {
    const usd = PRESETS_USD.find((each) => String(each) === preset);
    if (usd !== undefined) return BigInt(usd) * MICROS_IN_USD;
    const message = `must be one of ${presets}`;
    throw badRequest(
      `preset ${message}; any other amount goes into amount.`,
      [{ field: 'preset', message }],
      example,
    );
  }
  if (amount === undefined)
    throw badRequest(
      `Give preset (${presets}) or amount, in USD.`,
      [{ field: 'amount', message: 'give it, or preset' }],
      example,
    );
  const found = typeof amount === 'string' ? AMOUNT.exec(amount)?.groups : undefined;
  const micros =
    found === undefined
      ? null
      : BigInt(found.whole ?? 0) * MICROS_IN_USD + BigInt((found.part ?? '').padEnd(6, '0'));
  if (micros !== null && micros > 0n && micros <= MAX_USD * MICROS_IN_USD) return micros;
  const message = `must be USD above 0, with at most six places, up to ${MAX_USD}: such as 25.5`;
  throw badRequest(`amount ${message}.`, [{ field: 'amount', message }], example);
}

/** One of a few words; the first unless given. @throws Problem 400 */
export function readWord<const Word extends string>(
  value: unknown,
  field: string,
  words: readonly [Word, ...Word[]],
  example: string,
): Word {
  if (value === undefined) return words[0];
  const found = words.find((word) => word === value);
  if (found !== undefined) return found;
  const message = `must be ${words.join(' or ')}`;
  throw badRequest(`${field} ${message}.`, [{ field, message }], example);
}
