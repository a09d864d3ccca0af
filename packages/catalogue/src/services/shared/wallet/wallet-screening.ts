/** Whether a wallet is in a published list, by its address alone. */

import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import type { Address } from 'viem';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import { type ListInUse, type Lists, listFacts, SANCTIONS_LISTS } from '../../listed-parties.ts';
import { type ChainHead, type EvmChains, headOf, isNotConfigured } from './wallet-chains.ts';
import { isSanctioned } from './wallet-sanctions.ts';

/** An entry of a list that holds an address. */
export interface AddressHit {
  list: string;
  listTitle: string;
  uid: string;
  name: string;
  programs: string[];
  publishedAt: string;
}

/** The lists that name addresses, as they are now. */
export interface AddressLists {
  sanctions: ListInUse[];
  /** Null when the operator uses none. */
  mixers: ListInUse | null;
  facts: ReturnType<typeof listFacts>[];
  sources: Source[];
  notes: string[];
}

/**
 * Opens the lists of sanctions that name addresses, and the one of mixing services where there is one.
 *
 * @throws UpstreamUnavailable when one that is configured is older than its bound
 */
export async function addressLists(lists: Lists): Promise<AddressLists> {
  const named = SANCTIONS_LISTS.filter((name) => name.startsWith('ofac') && lists.configured.includes(name));
  const [sanctions, mixers] = await Promise.all([
    Promise.all(named.map((name) => lists.current(name))),
    lists.configured.includes('mixers') ? lists.current('mixers') : null,
  ]);
  const used = mixers === null ? sanctions : [...sanctions, mixers];
  return {
    sanctions,
    mixers,
    facts: used.map(listFacts),
    sources: used.map(({ source }) => source),
    notes: mixers === null ? ['No list of mixing services is configured here: mixers are null.'] : [],
  };
}

/** The entries of some lists with exactly this address. */
export function hitsOf(lists: readonly ListInUse[], address: string): AddressHit[] {
  return lists.flatMap((list) =>
    list.holdersOf(address).map(({ uid, name, programs }) => ({
      list: list.name,
      listTitle: list.title,
      uid,
      name,
      programs,
      publishedAt: list.publishedAt,
    })),
  );
}

/** What the oracles say. */
export interface OracleVerdict {
  chain: EvmChainName;
  /** Null: there is no oracle that answers. */
  sanctioned: boolean | null;
}

/**
 * Asks the sanctions oracle on the wallet's chain and the one on Ethereum, which is updated first.
 *
 * @throws UpstreamUnavailable when the wallet's own chain cannot be reached
 */
export async function oracleVerdicts(
  { chain }: ChainHead,
  wallet: Address,
  chains: EvmChains,
): Promise<{ verdicts: OracleVerdict[]; sources: Source[]; notes: string[] }> {
  const own = await isSanctioned(chain, wallet);
  const verdicts: OracleVerdict[] = [{ chain: chain.name, sanctioned: own }];
  const notes = own === null ? [`${chain.name} has no sanctions oracle that answers here.`] : [];
  if (chain.name === 'ethereum') return { verdicts, sources: [], notes };
  try {
    const head = await headOf(chains.ethereum);
    verdicts.push({ chain: 'ethereum', sanctioned: await isSanctioned(head.chain, wallet) });
    return { verdicts, sources: [head.source], notes };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    const why = isNotConfigured(error) ? 'is not configured here' : 'cannot be reached now';
    return {
      verdicts,
      sources: [],
      notes: [...notes, `Ethereum ${why}: only the oracle on ${chain.name} was asked.`],
    };
  }
}

/** True when one says so, null when none answers. */
export function verdictOf(verdicts: readonly OracleVerdict[]): boolean | null {
  if (verdicts.some(({ sanctioned }) => sanctioned === true)) return true;
  return verdicts.some(({ sanctioned }) => sanctioned === false) ? false : null;
}
