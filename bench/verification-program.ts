/** Recovers the signers of payments, again and again for as long as it is told. */
import { randomBytes } from 'node:crypto';
import { recoverTypedDataAddress } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { type Authorization, authorizationDigest, type Hex } from '../packages/core/src/rails/evm/eip3009.ts';
import {
  recoverAddress,
  recoverInJavaScript,
  recoverNatively,
} from '../packages/core/src/rails/evm/recover.ts';
import { NETWORKS } from '../packages/core/src/rails/x402/networks.ts';
import { transferData } from '../packages/sandbox/src/chain/eip3009.fixture.ts';
import { answerOrders } from './answering-process.ts';
import type { VerificationOrder, VerificationResult, Verifier } from './verification.ts';

const PAYMENTS = 256;
/** How many payments to verify between looks at the clock. */
const STRIDE = 16;

const [network] = NETWORKS;
const domain = { ...network.domain, chainId: network.chainId, verifyingContract: network.asset };

interface SignedPayment {
  authorization: Authorization;
  signature: Hex;
}

async function sign(): Promise<SignedPayment> {
  const account = privateKeyToAccount(generatePrivateKey());
  const authorization: Authorization = {
    from: account.address,
    to: `0x${randomBytes(20).toString('hex')}`,
    value: 250_000n,
    validAfter: 0n,
    validBefore: 2_000_000_000n,
    nonce: `0x${randomBytes(32).toString('hex')}`,
  };
  return {
    authorization,
    signature: await account.signTypedData(transferData(authorization, domain)),
  };
}
const payments = await Promise.all(Array.from({ length: PAYMENTS }, sign));

const verifiers: Record<Verifier, (payment: SignedPayment) => Hex | null | Promise<Hex>> = {
  native: ({ authorization, signature }) =>
    recoverAddress(authorizationDigest(network, authorization), signature, recoverNatively ?? undefined),
  javascript: ({ authorization, signature }) =>
    recoverAddress(authorizationDigest(network, authorization), signature, recoverInJavaScript),
  viem: ({ authorization, signature }) =>
    recoverTypedDataAddress({ ...transferData(authorization, domain), signature }),
};

answerOrders<VerificationOrder, VerificationResult>(
  async ({ by, durationMs }) => {
    const verify = verifiers[by];
    const startedAtMs = performance.now();
    let count = 0;
    while (performance.now() - startedAtMs < durationMs) {
      for (let step = 0; step < STRIDE; step++) {
        const payment = payments[count % PAYMENTS];
        if (payment === undefined) throw new Error('no payment');
        const found = verify(payment);
        // Ours returns at once, and awaiting it would measure the await.
        const signer = found instanceof Promise ? await found : found;
        if (signer?.toLowerCase() !== payment.authorization.from.toLowerCase())
          throw new Error(`${by} found another signer`);
        count += 1;
      }
    }
    return { perSecond: count / ((performance.now() - startedAtMs) / 1_000) };
  },
  { hasNative: recoverNatively !== null },
);
