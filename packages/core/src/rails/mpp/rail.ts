/**
 * The MPP rail: the HTTP "Payment" authentication scheme, with the reference library for challenges and credentials.
 * The library does not take the money: credentials are claimed, verified, settled and looked up by the same steps and
 * in the same table as x402 payments. https://paymentauth.org  https://mpp.dev
 */
import type { Database } from '../../db/connection.ts';
import type { OnChainPayment, Quote, Rail, Headers as RequestHeaders } from '../../paid-call/rail.ts';
import type { EvmKey } from '../../relayer/sign.ts';
import { auditNetwork, type ChainAudit } from '../evm/audit.ts';
import type { Hex } from '../evm/eip3009.ts';
import type { PaidOnNetwork } from '../evm/paid-since.ts';
import type { AuthorizationSettler } from '../evm/settler.ts';
import type { Seen } from '../on-chain/standing.ts';
import { mppChains, openTempo, type TempoNeeds } from './chains.ts';
import { isOffered, type MethodName, type OfferedMethod, offeredMethods, TEMPO } from './methods.ts';
import { openChallenges } from './offer.ts';
import { readPayment, recallPayment } from './read.ts';
import { hasCredential, type MppCredential } from './wire.ts';

interface MppConfig {
  methods: readonly MethodName[];
  /**
   * At least 32 characters each, and the same on all replicas. The first makes challenges; all of them recognize
   * challenges. They may be others at any time, and never none once there is one.
   */
  secretKeys(): readonly string[];
  tempoRpcUrl: string;
  /** Null when Tempo is not offered. */
  tempoRecipient: Hex | null;
  tempoCurrency: Hex;
  tempoRefundKey: EvmKey | null;
}

export interface MppRail {
  rail: Rail;
  /** The methods that are offered, in order of preference. */
  methods: readonly OfferedMethod[];
  /** Tempo, if it is offered, and how to see whether somebody could pay there now. */
  networks: readonly { network: string; look(): Promise<Seen> }[];
  /** A fresh 402 in the standard's form. `request` comes without its credential. */
  challenge(
    quote: Quote,
    request: { headers: RequestHeaders; rawBody: Buffer | undefined },
  ): Promise<{ headers: Record<string, string>; body: Record<string, unknown> }>;
  /** Compares the books with the Tempo chain. The x402 rail does the same for the other chains. */
  audit(sql: Database): Promise<ChainAudit[]>;
  /** What was paid on Tempo since a time, if it is configured. @throws when its node does not say */
  paidSince(sinceMs: number): Promise<readonly PaidOnNetwork[]>;
  /** One round over our own pending transactions. */
  resume(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the rail as it is configured; null when no method is configured, or no secret to bind challenges with.
 *
 * @param realm the name that challenges are bound to: the host of the public address
 */
export function openMppRail(
  config: MppConfig,
  realm: string,
  parts: TempoNeeds & { evm: AuthorizationSettler | null },
): MppRail | null {
  const { methods: names, tempoRpcUrl: rpcUrl, tempoRecipient: recipient, tempoCurrency: currency } = config;
  if (names.length === 0 || config.secretKeys().length === 0) return null;
  // What was paid on a chain is looked up there for as long as the chain is configured, whether or not it is offered.
  const configured = recipient === null ? null : { rpcUrl, recipient, currency };
  const methods = {
    names,
    tempo: names.includes('tempo') ? configured : null,
    evm: names.includes('evm') ? parts.evm : null,
  };
  const challenges = openChallenges(methods, {
    realm,
    secretKeys: config.secretKeys,
    sandbox: parts.sandbox,
    nowMs: parts.nowMs,
  });
  const tempo =
    configured === null ? null : openTempo({ ...configured, refundKey: config.tempoRefundKey }, parts);
  /** What the library validates: credentials as they were presented. They are stored nowhere. */
  const presented = new WeakMap<OnChainPayment, { credential: MppCredential; quote: Quote }>();
  const chains = mppChains(tempo, methods.evm, async (payment) => {
    const read = presented.get(payment);
    if (read === undefined) throw new Error('a payment is verified in the request that brought it');
    await challenges.validate(read.credential, read.quote);
  });
  const reading = { methods, realm, challenges, nowMs: parts.nowMs };
  const offered = offeredMethods(methods);

  return {
    rail: {
      name: 'mpp',
      chains,
      offer: () => ({ headers: {}, accepts: [], body: {} }),
      recognizes: hasCredential,
      async read(headers, quote, beside) {
        const { payment, credential } = await readPayment(reading, headers, quote, beside);
        presented.set(payment.onChain, { credential, quote });
        return payment;
      },
      recall: (headers) => recallPayment(reading, headers).catch(() => null),
    },
    methods: offered,
    networks: tempo === null || methods.tempo === null ? [] : [{ network: TEMPO, look: tempo.look }],
    async challenge(quote, request) {
      const { evm } = methods;
      const taken = offered.filter((each) => isOffered(each, quote, { evm, canRefund: chains.canRefund }));
      return challenges.make(quote, request, taken);
    },
    async audit(sql) {
      if (methods.tempo === null) return [];
      const payTo = methods.tempo.recipient;
      return [await auditNetwork({ sql, network: TEMPO, payTo, evm: null, finality: chains.finality })];
    },
    async paidSince(sinceMs) {
      if (tempo === null || recipient === null) return [];
      const paid = await tempo.paidSince(recipient, sinceMs);
      return [{ network: TEMPO, rail: 'mpp', paid, landsWithinMs: 0 }];
    },
    resume: async () => void (await tempo?.resume()),
    close: async () => tempo?.close(),
  };
}
