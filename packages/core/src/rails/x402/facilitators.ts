/** Which of the configured facilitators settles which network. */
import { connectFacilitator, type Facilitator, type SupportedKinds } from '../on-chain/facilitator.ts';
import type { Network } from './networks.ts';

export interface Facilitators {
  /** The facilitators that settle a network for clients of this protocol version, in the configured order. */
  settling(network: Network, version: 1 | 2): Facilitator[];
  /** How many of those that settle this network there are, and how many of them did not answer when asked last. */
  answering(network: Network): { all: number; silent: number };
  /** The fee payer that the first facilitator names for this network; null when none names one. */
  feePayerOf(network: Network): string | null;
  /** Every address from which any of them pays fees. */
  feePayers(): string[];
  /** Grows whenever the set of networks that they settle changes. */
  readonly revision: number;
  /** Asks the facilitators what they settle. Keeps the last answer of one that does not reply. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

/** @param token the authorization that identifies us to them now; null: none is sent */
export function openFacilitators(urls: readonly string[], token: () => string | null): Facilitators {
  const all = urls.map((url) => ({
    client: connectFacilitator(url, token),
    kinds: [] as SupportedKinds,
    isSilent: false,
  }));
  let revision = 0;
  function settling(network: Network, version: 1 | 2) {
    const name = version === 2 ? network.id : network.legacyName;
    return all.filter(({ kinds }) =>
      kinds.some((kind) => kind.scheme === 'exact' && kind.x402Version === version && kind.network === name),
    );
  }
  return {
    settling: (network, version) => settling(network, version).map(({ client }) => client),
    answering(network) {
      const those = settling(network, 2);
      return { all: those.length, silent: those.filter(({ isSilent }) => isSilent).length };
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
          facilitator.isSilent = kinds === null;
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
