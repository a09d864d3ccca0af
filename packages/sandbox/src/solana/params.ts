/** Reads the parameters of a call, and refuses wrong ones as a node would. */
import { type Address, isAddress } from '@solana/kit';
import { INVALID_PARAMS, RpcError } from './json-rpc.ts';

type Params = readonly unknown[];
export type Config = Readonly<Record<string, unknown>>;

const COMMITMENTS = ['processed', 'confirmed', 'finalized'] as const;
export type Commitment = (typeof COMMITMENTS)[number];

export function invalid(message: string): RpcError {
  return new RpcError(INVALID_PARAMS, message);
}

export function textAt(params: Params, index: number): string {
  const value = params[index];
  if (value === undefined) throw invalid('`params` should have at least 1 argument(s)');
  if (typeof value !== 'string') throw invalid('Invalid params: invalid type, expected a string.');
  return value;
}

export function addressAt(params: Params, index: number): Address {
  return toAddress(textAt(params, index));
}

export function toAddress(value: unknown): Address {
  if (typeof value !== 'string' || !isAddress(value)) throw invalid('Invalid param: Invalid');
  return value;
}

/** @param maximum entries; more are refused in a node's words */
export function listAt(params: Params, index: number, maximum: number): readonly unknown[] {
  const value = params[index];
  if (!Array.isArray(value)) throw invalid('Invalid params: invalid type, expected a sequence.');
  if (value.length > maximum) throw invalid(`Too many inputs provided; max ${maximum}`);
  return value;
}

export function integerAt(params: Params, index: number, maximum: number): number {
  return toInteger(params[index], maximum);
}

/** The options object at this place; an empty one if there is none. */
export function configAt(params: Params, index: number): Config {
  const value = params[index] ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid('Invalid params: invalid config.');
  return { ...value };
}

export function integerOf(config: Config, name: string, fallback: number, maximum: number): number {
  return config[name] === undefined || config[name] === null ? fallback : toInteger(config[name], maximum);
}

export function flagOf(config: Config, name: string): boolean {
  const value = config[name] ?? false;
  if (typeof value !== 'boolean') throw invalid(`Invalid params: ${name} must be a boolean.`);
  return value;
}

export function choiceOf<T extends string>(
  config: Config,
  name: string,
  choices: readonly T[],
  fallback: T,
): T {
  const value = config[name] ?? fallback;
  const choice = choices.find((one) => one === value);
  if (choice === undefined)
    throw invalid(`Invalid params: unknown variant \`${value}\`, expected one of ${choices.join(', ')}.`);
  return choice;
}

/** Like a node, takes `finalized` if the options name no commitment. */
export function commitmentOf(config: Config): Commitment {
  return choiceOf(config, 'commitment', COMMITMENTS, 'finalized');
}

/** For methods about transactions, which refuse the commitment `processed`. */
export function settledCommitmentOf(config: Config): 'confirmed' | 'finalized' {
  const commitment = commitmentOf(config);
  if (commitment === 'processed') throw invalid('Method does not support commitment below `confirmed`');
  return commitment;
}

function toInteger(value: unknown, maximum: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > maximum)
    throw invalid(`Invalid params: expected a whole number from 0 to ${maximum}.`);
  return value;
}
