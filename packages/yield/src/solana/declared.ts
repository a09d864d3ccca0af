import { declare, list, url, whole } from '@farebox/core/declared';
import { upstreamBaseUrlVariable } from '@farebox/core/words/upstream-variables';
import { isAddress, isOffCurveAddress } from '@solana/kit';
import { z } from 'zod';

const NODE = upstreamBaseUrlVariable('solana');
const TREASURY = 'SOLANA_YIELD_TREASURY';
const SINCE_SLOT = 'SOLANA_YIELD_SINCE_SLOT';
const FURTHER_NODES = 'SOLANA_YIELD_FURTHER_NODES';
const PAID_FOR_CALLS = 'X402_RECIPIENT_SOLANA';

export const SOLANA_YIELD = declare({
  name: 'solanaYield',
  variables: {
    treasury: {
      name: TREASURY,
      describe:
        'Wallet on Solana that the fees of `/api/solana-yield/` go to, with an existing token account for USDC; without it these addresses answer 503. It must receive no other payments',
      shape: z
        .string()
        .refine(
          (value) => isAddress(value) && !isOffCurveAddress(value),
          'must be the base58 address of a wallet: the owner, not the token account',
        ),
      fallback: null,
    },
    sinceSlot: {
      name: SINCE_SLOT,
      describe:
        'The slot in which the portal begins: deposits and fees from before it are ignored. Needed with `SOLANA_YIELD_TREASURY`',
      shape: whole(0, Number.MAX_SAFE_INTEGER),
      fallback: null,
    },
    furtherNodes: {
      name: FURTHER_NODES,
      describe: `Addresses of further nodes of Solana mainnet, comma-separated, four at most: while the one of \`${NODE}\` does not answer, the portal asks the first of these that does`,
      shape: list(url, 4),
      fallback: '',
      secret: true,
      renewed: true,
    },
  },
  problems({ treasury, sinceSlot }, { other }) {
    if (!treasury) return [];
    return [
      ...(other(NODE) === null ? [`${NODE}: the portal reads Solana there, so it cannot be none`] : []),
      ...(sinceSlot === null
        ? [`${SINCE_SLOT}: must be set with ${TREASURY}: give the slot that the chain is in now`]
        : []),
      // Otherwise payments for calls would count as fees of deposits, and be due for a refund.
      ...(other(PAID_FOR_CALLS) === treasury
        ? [
            `${TREASURY}: must be another wallet than ${PAID_FOR_CALLS}, since all that it receives counts as fees`,
          ]
        : []),
    ];
  },
  money: ({ treasury, furtherNodes }, { other }) =>
    treasury === null
      ? {}
      : {
          urls: [
            { variable: NODE, url: String(other(NODE) ?? '') },
            ...(furtherNodes ?? []).map((each) => ({ variable: FURTHER_NODES, url: each })),
          ],
          recipients: [{ variable: TREASURY, wallet: treasury }],
        },
});
