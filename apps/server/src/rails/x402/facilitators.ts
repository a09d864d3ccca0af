/** Which of the configured facilitators settles which network. */
import { connectFacilitator, type Facilitator, type SupportedKinds } from '../on-chain/facilitator.ts';
import type { Network } from './networks.ts';

export interface Facilitators {
  /** Those that settle a network for clients of a generation, in the configured order. */
  settling(network: Network, version: 1 | 2): Facilitator[];
  /** Who pays the fees there for the first that says so; null: none does. */
  feePayerOf(network: Network): string | null;
  /** All that any of them pays fees from. */
  feePayers(): string[];
  /** Grows whenever they settle something else than before. */
  readonly revision: number;
  /** Asks them what they settle. Keeps what it knew of one that does not answer. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** @param token who we are to them; null: nobody in particular */
export function openFacilitators(urls: readonly string[], token: string | null): Facilitators {
  const all = urls.map((url) => ({ client: connectFacilitator(url, token), kinds: [] as SupportedKinds }));
  let revision = 0;
  return {
    settling(network, version) {
      const name = version === 2 ? network.id : network.legacyName;
      return all
        .filter(({ kinds }) =>
          kinds.some(
            (kind) => kind.scheme === 'exact' && kind.x402Version === version && kind.network === name,
          ),
        )
        .map(({ client }) => client);
    },
    feePayerOf(network) {
      for (const { kinds } of all) {
        const kind = kinds.find((each) => each.scheme === 'exact' && each.network === network.id);
        if (typeof kind?.extra?.feePayer === 'string') return kind.extra.feePayer;
      }
      return null;
    },
    feePayers: () =>
      all.flatMap(({ kinds }) =>
        kinds.map((kind) => kind.extra?.feePayer).filter((each) => typeof each === 'string'),
      ),
    get revision() {
      return revision;
    },
    async refresh() {
      await Promise.all(
        all.map(async (facilitator) => {
          const kinds = await facilitator.client.supported().catch(() => null);
          if (kinds === null || JSON.stringify(kinds) === JSON.stringify(facilitator.kinds)) return;
          facilitator.kinds = kinds;
          revision += 1;
        }),
      );
    },
    async close() {
      await Promise.all(all.map(({ client }) => client.close()));
    },
  };
}
