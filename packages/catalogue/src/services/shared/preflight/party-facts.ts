/** Reads what lists, oracles, registers and the chain say about those who take part in a transaction. */
import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import type { Address } from 'viem';
import type { PartyFacts } from '../../../preflight/judge.ts';
import { knownContract } from '../../../preflight/known-contracts.ts';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import type { Lists } from '../../listed-parties.ts';
import { isSanctioned } from '../wallet/wallet-sanctions.ts';
import { type AddressLists, addressLists, hitsOf } from '../wallet/wallet-screening.ts';
import type { Check } from './coverage.ts';

/** More take part in nothing that a person would sign knowingly. */
const MOST_PARTIES = 30;
const MOST_REGISTER_LOOKUPS = 8;
const DELEGATION = /^0xef0100/i;

export interface Parties {
  facts: Map<string, PartyFacts>;
  checks: Check[];
  sources: Source[];
}

/**
 * @param addresses those beyond 30 are not looked at, which is told
 * @param asksRegister whose source is looked up: contracts that get rights or are called, not tokens that only move
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function readParties(
  chain: EvmChain,
  blockNumber: bigint,
  addresses: readonly Address[],
  asksRegister: (address: Address) => boolean,
  { sourcify, lists }: { sourcify: Upstreams['sourcify'] | undefined; lists: Lists | undefined },
): Promise<Parties> {
  const asked = addresses.slice(0, MOST_PARTIES);
  const [codes, sanctions, opened] = await Promise.all([
    Promise.all(asked.map((address) => chain.client.getCode({ address, blockNumber }))),
    Promise.all(asked.map((address) => isSanctioned(chain, address))),
    openLists(lists),
  ]);
  const bare = asked.map((address, index): PartyFacts => {
    const code = codes[index];
    const hasCode = code !== undefined && code !== '0x';
    return {
      address,
      account: !hasCode ? 'none' : DELEGATION.test(code) ? 'delegated' : 'contract',
      known: hasCode ? knownContract(address) : null,
      isVerified: null,
      ...listedAs(address, sanctions[index] ?? null, opened),
    };
  });
  const unknown = bare.filter(
    ({ address, account, known }) => account === 'contract' && known === null && asksRegister(address),
  );
  const register = await verifications(chain.chainId, unknown, sourcify);
  return {
    facts: new Map(
      bare.map((each) => [
        each.address.toLowerCase(),
        { ...each, isVerified: register.of.get(each.address.toLowerCase()) ?? null },
      ]),
    ),
    checks: [
      {
        check: 'sanctions-oracle',
        done: sanctions.every((each) => each !== null),
        why: sanctions.includes(null) ? `There is no oracle that answers on ${chain.name}.` : null,
      },
      opened.check,
      register.check,
      {
        check: 'counterparties',
        done: addresses.length <= MOST_PARTIES,
        why:
          addresses.length <= MOST_PARTIES
            ? null
            : `Of ${addresses.length} addresses ${MOST_PARTIES} were looked at.`,
      },
    ],
    sources: [...(opened.lists?.sources ?? []), ...register.sources],
  };
}

function listedAs(address: Address, byOracle: boolean | null, { lists }: { lists: AddressLists | null }) {
  const isListed =
    lists === null || lists.sanctions.length === 0 ? null : hitsOf(lists.sanctions, address).length > 0;
  const isSanctionedHere = byOracle === true || isListed === true ? true : (byOracle ?? isListed);
  const isMixer = lists?.mixers == null ? null : hitsOf([lists.mixers], address).length > 0;
  return { isSanctioned: isSanctionedHere, isMixer };
}

async function openLists(lists: Lists | undefined): Promise<{ lists: AddressLists | null; check: Check }> {
  const none = (why: string) => ({
    lists: null,
    check: { check: 'sanctions-lists' as const, done: false, why },
  });
  if (lists === undefined) return none('No lists are configured here.');
  try {
    const opened = await addressLists(lists);
    if (opened.sanctions.length === 0)
      return { ...none('No list with addresses is configured here.'), lists: opened };
    return { lists: opened, check: { check: 'sanctions-lists', done: true, why: null } };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return none('A list is older than its bound.');
  }
}

async function verifications(
  chainId: number,
  contracts: readonly PartyFacts[],
  sourcify: Upstreams['sourcify'] | undefined,
): Promise<{ of: Map<string, boolean>; check: Check; sources: Source[] }> {
  const of = new Map<string, boolean>();
  const sources: Source[] = [];
  const asked = contracts.slice(0, MOST_REGISTER_LOOKUPS);
  let why: string | null =
    contracts.length > asked.length
      ? `Of ${contracts.length} contracts ${asked.length} were looked up.`
      : null;
  await Promise.all(
    asked.map(async ({ address }) => {
      try {
        if (sourcify === undefined) throw new UpstreamUnavailable('sourcify', 'not_configured', '', 0);
        const { value, source } = await sourcify.contract(chainId, address);
        of.set(address.toLowerCase(), value !== null);
        if (sources.length === 0) sources.push(source);
      } catch (error) {
        if (!(error instanceof UpstreamUnavailable)) throw error;
        why =
          error.reason === 'not_configured' ? 'Sourcify is not configured here.' : 'Sourcify did not answer.';
      }
    }),
  );
  return { of, sources, check: { check: 'published-source', done: why === null, why } };
}
