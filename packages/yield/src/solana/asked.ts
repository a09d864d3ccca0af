/** Reads a caller's request: a wallet, an amount. Whatever is wrong is told with the field and what would be right. */

import { type FieldIssue, Problem } from '@farebox/core/http/problem';
import { type Address, isAddress } from '@solana/kit';
import { usdcText } from '../figures.ts';
import { isOnCurve } from './address-bytes.ts';
import { MAX_AMOUNT, MIN_DEPOSIT } from './terms.ts';
import { LEVELS, MOST_ASKED, type Priority } from './unit-price.ts';

const UNITS_IN_USDC = 1_000_000n;
/** Below this the older `amount` is dollars, from there on units. */
const LEGACY_UNITS_FROM = 10_000;
const DOLLARS = /^(?<whole>\d{1,10})(?:\.(?<part>\d{1,6}))?$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type Body = Readonly<Record<string, unknown>>;

/** A 400 that says what to change and shows what is right. */
export function badRequest(
  message: string,
  fields: readonly FieldIssue[],
  example: object | string,
): Problem {
  return new Problem(400, 'INVALID_REQUEST', message, { details: { success: false, fields, example } });
}

/**
 * A wallet that can sign: 32 bytes in base58, on the curve.
 *
 * @throws Problem 400
 */
export function readWallet(value: unknown, example: object | string): Address {
  const refuse = (message: string) =>
    badRequest(`wallet ${message}`, [{ field: 'wallet', message }], example);
  if (typeof value !== 'string' || value === '')
    throw refuse('is missing: give the address of the wallet in base58.');
  if (!isAddress(value)) throw refuse('must be one address of Solana: 32 bytes in base58.');
  if (!isOnCurve(value))
    throw refuse(
      'is no wallet: nobody has a key for this address, so nobody can sign for it. Give the owner of the token account.',
    );
  return value;
}

/**
 * An amount in units of six places, as text.
 *
 * @param field where it was given
 * @throws Problem 400
 */
export function readUnits(value: unknown, field: string, example: object): bigint {
  const units = typeof value === 'string' && /^\d{1,16}$/.test(value) ? BigInt(value) : 0n;
  if (units > 0n && units <= MAX_AMOUNT) return units;
  const message = `must be a whole number above 0 as text, in units of six places, up to ${MAX_AMOUNT}: "5000000" is 5 USDC`;
  throw badRequest(`${field} ${message}.`, [{ field, message }], example);
}

/**
 * How much to deposit, with the fee: `amount_raw`, else `amount_usdc`, else the older `amount`.
 *
 * @returns USDC units
 * @throws Problem 400
 */
export function readDeposit(body: Body, example: object): bigint {
  const { field, units } = isGiven(body.amount_raw)
    ? { field: 'amount_raw', units: readUnits(body.amount_raw, 'amount_raw', example) }
    : isGiven(body.amount_usdc)
      ? { field: 'amount_usdc', units: readDollars(body.amount_usdc, 'amount_usdc', example) }
      : { field: 'amount', units: readLegacy(body.amount, example) };
  if (units >= MIN_DEPOSIT) return units;
  const message = `must be at least ${usdcText(MIN_DEPOSIT)} USDC, which is ${MIN_DEPOSIT} units; it is ${usdcText(units)} USDC`;
  throw badRequest(`${field} ${message}.`, [{ field, message }], example);
}

/**
 * How much to withdraw, before fees: `MAX` in any of the fields, or `amount_raw`, or `amount_usdc`.
 *
 * @returns USDC units
 * @throws Problem 400
 */
export function readWithdrawal(body: Body, example: object): bigint | 'MAX' {
  const { amount, amount_usdc, amount_raw } = body;
  if (
    [amount, amount_usdc, amount_raw].some((each) => typeof each === 'string' && each.toUpperCase() === 'MAX')
  )
    return 'MAX';
  if (isGiven(amount_raw)) return readUnits(amount_raw, 'amount_raw', example);
  if (isGiven(amount_usdc)) return readDollars(amount_usdc, 'amount_usdc', example);
  const message = 'give amount_usdc in dollars, or set amount to "MAX" to take all of it';
  throw badRequest(
    `amount: ${message}.`,
    [{ field: isGiven(amount) ? 'amount' : 'amount_usdc', message }],
    example,
  );
}

/** The caller's name for a deposit; null: none. @throws Problem 400 */
export function readIdempotencyKey(value: unknown, example: object): string | null {
  if (!isGiven(value)) return null;
  if (typeof value === 'string' && UUID.test(value)) return value.toLowerCase();
  const message = 'must be a UUID, such as 3f2b6c1e-8d4a-4c7b-9e51-0a6f2d3b4c5d';
  throw badRequest(`idempotency_key ${message}.`, [{ field: 'idempotency_key', message }], example);
}

/**
 * How much is paid for landing soon: a level, or millionths of a lamport for a unit as a whole number or its text. `medium` unless given.
 *
 * @throws Problem 400
 */
export function readPriority(value: unknown, example: object): Priority {
  if (!isGiven(value)) return 'medium';
  const level = LEVELS.find((each) => each === value);
  if (level !== undefined) return level;
  const text = typeof value === 'number' ? String(value) : value;
  const price = typeof text === 'string' && /^\d{1,9}$/.test(text) ? BigInt(text) : null;
  if (price !== null && price <= MOST_ASKED) return price;
  const message = `must be low, medium or high, or a whole number of micro-lamports for a unit, up to ${MOST_ASKED}`;
  throw badRequest(`priority ${message}.`, [{ field: 'priority', message }], example);
}

/** Dollars with at most six places: the number as it was written, not as a machine rounds it. */
function readDollars(value: unknown, field: string, example: object): bigint {
  const text = typeof value === 'number' ? String(value) : value;
  const found = typeof text === 'string' ? DOLLARS.exec(text)?.groups : undefined;
  const units =
    found === undefined
      ? 0n
      : BigInt(found.whole ?? 0) * UNITS_IN_USDC + BigInt((found.part ?? '').padEnd(6, '0'));
  if (units > 0n && units <= MAX_AMOUNT) return units;
  const message = `must be dollars above 0, with at most six places, up to ${MAX_AMOUNT / UNITS_IN_USDC}: such as 25.5`;
  throw badRequest(`${field} ${message}.`, [{ field, message }], example);
}

function readLegacy(value: unknown, example: object): bigint {
  if (!isGiven(value)) {
    const message = 'give amount_usdc (dollars) or amount_raw (units, as text)';
    throw badRequest(`amount_usdc is missing: ${message}.`, [{ field: 'amount_usdc', message }], example);
  }
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || number < LEGACY_UNITS_FROM) return readDollars(value, 'amount', example);
  return readUnits(String(number), 'amount', example);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}
