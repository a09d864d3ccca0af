/** Field types that more than one service takes, with the spellings that existing clients send. */
import { z } from 'zod';
import { agentIdFault } from '../words/agent-id.ts';
import { CHAINS, type ChainName } from '../words/chain-names.ts';
import { isNameable, NOT_NAMEABLE } from '../words/name.ts';
import { cleanDeep, cleanLine, cleanLines } from '../words/outsider-text.ts';

/** EIP-155 ids; Solana has none. */
const CHAIN_IDS: Record<Exclude<ChainName, 'solana'>, number> = {
  ethereum: 1,
  base: 8453,
  polygon: 137,
  arbitrum: 42161,
  optimism: 10,
  bsc: 56,
};

const CHAIN_ALIASES: Record<string, ChainName> = {
  eth: 'ethereum',
  mainnet: 'ethereum',
  matic: 'polygon',
  arb: 'arbitrum',
  op: 'optimism',
  bnb: 'bsc',
  binance: 'bsc',
  sol: 'solana',
};
for (const [name, id] of Object.entries(CHAIN_IDS)) {
  CHAIN_ALIASES[String(id)] = name as ChainName;
  CHAIN_ALIASES[`eip155:${id}`] = name as ChainName;
}

function canonicalChain(value: unknown): unknown {
  if (typeof value === 'number') return CHAIN_ALIASES[String(value)] ?? value;
  if (typeof value !== 'string') return value;
  const lower = value
    .trim()
    .toLowerCase()
    .replace(/-mainnet$/, '');
  if (lower.startsWith('solana:')) return 'solana';
  return CHAIN_ALIASES[lower] ?? lower;
}

/** A chain by name; also accepts short names, EIP-155 ids and CAIP-2 ids. */
export const chainName = z.preprocess(canonicalChain, z.enum(CHAINS)).describe('Chain name, such as "base"');

/** A token's address: 0x and 40 hex digits on EVM chains, base58 on Solana. */
export const tokenAddress = z
  .string()
  .trim()
  .regex(
    /^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/,
    'must be an EVM address (0x + 40 hex digits) or a Solana address (base58)',
  )
  .describe('Token address: 0x and 40 hex digits, or base58 on Solana');

/** Accepts a number, or a string that contains only a number; never an empty string. */
function numeric(value: unknown): unknown {
  return typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)
    ? Number(value)
    : value;
}

/** A finite number between two bounds, in the unit that `description` names. */
export function numberBetween(minimum: number, maximum: number, description: string) {
  return z.preprocess(numeric, z.number().min(minimum).max(maximum)).describe(description);
}

/** How many items to return. Out-of-range values are refused, not clamped. */
export function limit(fallback: number, maximum: number) {
  return z
    .preprocess(numeric, z.number().int().min(1).max(maximum))
    .default(fallback)
    .describe(`How many to return: 1 to ${maximum}, ${fallback} unless given`);
}

export const latitude = numberBetween(-90, 90, 'Latitude in degrees north, -90 to 90');

/** Degrees east. Values from 180 to 360 are converted to west, as some catalogs write them. */
export const longitude = z
  .preprocess((value) => {
    const number = numeric(value);
    return typeof number === 'number' && number > 180 && number <= 360 ? number - 360 : number;
  }, z.number().min(-180).max(180))
  .describe('Longitude in degrees east, -180 to 180');

/** A day in UTC, `YYYY-MM-DD`, that exists in the calendar. */
export const isoDate = z.iso.date().describe('Day in UTC, YYYY-MM-DD');

const MAX_AGENT_ID_LENGTH = 200;

/** A buyer's own id for an agent, trimmed. One that only looks like another is refused; case does not count. */
export function agentIdText(description: string) {
  return text(MAX_AGENT_ID_LENGTH, description).superRefine((agentId, { addIssue }) => {
    const message = agentIdFault(agentId, MAX_AGENT_ID_LENGTH);
    if (message !== null) addIssue({ code: 'custom', message });
  });
}

/** Trimmed text of one line that others may be shown, such as a name. */
export function nameText(maximumLength: number, description: string) {
  return text(maximumLength, description).refine(isNameable, NOT_NAMEABLE);
}

/** Trimmed text that is not empty. */
export function text(maximumLength: number, description: string) {
  return z.string().trim().min(1).max(maximumLength).describe(description);
}

/** Marks what outsiders wrote in a JSON Schema, for whoever hands the value to a model. */
export const UNTRUSTED = 'x-farebox-untrusted';

/**
 * Text of an answer that somebody outside wrote: a token's name, a headline, a reason that a contract gives. It may say anything,
 * such as that the user has agreed. It leaves in one line, bounded and without characters that nobody sees; whoever hands the answer
 * to a model names and fences it.
 *
 * @param maxCharacters the longest; what is longer is cut with an ellipsis
 *
 * @example
 * ```ts
 * import { outsiderText } from '@farebox/core/service/fields';
 *
 * outsiderText(20).parse('A coin\nof my own'); // 'A coin of my own'
 * ```
 */
export function outsiderText(maxCharacters: number) {
  return z
    .string()
    .overwrite((text) => cleanLine(text, maxCharacters))
    .max(maxCharacters)
    .meta({ [UNTRUSTED]: true });
}

/** The same for text of several lines. */
export function outsiderLines(maxCharacters: number) {
  return z
    .string()
    .overwrite((text) => cleanLines(text, maxCharacters))
    .max(maxCharacters)
    .meta({ [UNTRUSTED]: true });
}

/** The same for an object of any fields that holds what outsiders wrote. @param maxCharacters of each text in it */
export function outsiderObject(maxCharacters: number) {
  return z
    .record(z.string(), z.unknown())
    .overwrite((value) => cleanDeep(value, maxCharacters))
    .meta({ [UNTRUSTED]: true });
}
