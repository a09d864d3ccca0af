import { chainName, numberBetween, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer, ServiceFailure, UpstreamUnavailable } from '@farebox/core/words/failure';
import {
  type Address,
  encodeFunctionData,
  erc20Abi,
  formatUnits,
  type Hex,
  isHex,
  numberToHex,
  zeroAddress,
} from 'viem';
import { z } from 'zod';
import { EVM_CHAIN_NAMES, type EvmChainName, evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import {
  allowanceOf,
  allowanceSlot,
  BURN_SIGNATURE,
  burnCall,
  burnFee,
  DOMAINS,
  MESSAGE_TRANSMITTER,
  MOST_PER_BURN_MICROS,
  THRESHOLD,
  TOKEN_MESSENGER,
} from '../shared/chain/bridge-burn.ts';
import { faultsOf, LIFI_DIAMOND } from '../shared/chain/bridge-quote.ts';
import { readTokens } from '../shared/chain/chain-token.ts';
import {
  type AskedAmount,
  inSmallestUnit,
  isOneAmount,
  movedAmount,
  movedAmountRaw,
  ONE_AMOUNT,
} from '../shared/chain/token-amount.ts';
import { heard } from '../shared/market/sentiment.ts';
import { checkOwn, ownCheck } from '../shared/preflight/own-check.ts';
import { evmAddress, isEvmAddress } from '../shared/wallet/wallet-address.ts';
import { type ChainHead, headOf, isNotConfigured, namedChain } from '../shared/wallet/wallet-chains.ts';
import { type Party, refuseListed } from '../shared/wallet/wallet-sanctions.ts';
import { type Call, tryCall } from '../shared/wallet/wallet-transaction.ts';

const USDC_DECIMALS = 6;
/**
 * How long Circle needs according to its documentation. Fast transfers are covered by its allowance; others wait for
 * finality.
 */
const FILL_SECONDS = { fast: 20, standard: 1_140 } as const;

const call = z.object({
  to: z.string().describe('The contract that is called'),
  data: z.string().nullable().describe('Null where it needs a recipient that was not given; see template'),
  value: z.string().describe('Wei, in hex'),
  chainId: z.number().int().describe('EIP-155 id of the chain'),
  gas: z.string().nullable().describe('In hex; null when no trial run could measure it'),
});

export default defineService({
  path: 'seamless-chain-bridge',
  name: 'Seamless Chain Bridge',
  tag: 'Execution',
  priceUsd: '2.00',
  summary:
    'An unsigned bridge transaction: USDC by Circle CCTP, other tokens by LI.FI, checked field by field and simulated.',
  keywords:
    'bridge bridging cross chain crosschain move send transfer usdc tokens from one network to another base arbitrum optimism polygon ethereum cctp lifi layer2 l2 swap networks',
  input: z
    .object({
      fromChain: chainName,
      toChain: chainName,
      token: text(60, 'Ticker (USDC, ETH) or address of the token on fromChain'),
      amount: movedAmount.optional(),
      amountRaw: movedAmountRaw.optional(),
      fromAddress: evmAddress('Who will sign: needed for any token but USDC').optional(),
      recipient: evmAddress(
        'Who is to receive on toChain; fromAddress unless given, if that is no contract',
      ).optional(),
      toToken: text(60, 'Ticker or address of what is received; the same token unless given').optional(),
      slippagePercent: numberBetween(
        0.01,
        5,
        'Most that may be lost to prices on the way, in percent',
      ).default(0.5),
      speed: z
        .preprocess(
          (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
          z.enum(['fast', 'standard']),
        )
        .default('fast')
        .describe('Of USDC: fast takes seconds and a fee, standard waits for finality'),
    })
    .refine(({ fromChain, toChain }) => fromChain !== toChain, {
      path: ['toChain'],
      message: 'must be another chain than fromChain',
    })
    .refine(isOneAmount, ONE_AMOUNT)
    .meta({
      anyOf: [{ required: ['amount'] }, { required: ['amountRaw'] }],
    }),
  output: z.object({
    amount: z.string().describe('What is sent, in whole tokens'),
    amountRaw: z.string().describe('The same in the smallest unit'),
    transaction: call.describe('The unsigned bridge transaction'),
    approval: call
      .extend({
        needed: z.boolean().nullable().describe('Whether it must go first; null where it is not known'),
      })
      .nullable()
      .describe('Lets the bridge take the amount and no more; null for a chain’s own coin'),
    template: z
      .object({
        function: z.string().describe('The function’s signature'),
        arguments: z.record(z.string(), z.string().nullable()).describe('Null is for you to fill in'),
        fill: z.array(z.string()).describe('Arguments to fill in'),
      })
      .nullable()
      .describe('Without a recipient: the call to complete; else null'),
    quote: z
      .object({
        inputAmount: z.string().describe('What is sent, in whole units'),
        outputAmount: z.string().describe('Expected, in whole units'),
        minOutputAmount: z.string().describe('At least, or the transaction fails or waits'),
        totalFeePct: z
          .number()
          .nullable()
          .describe('All fees, in percent of the amount; null where they are not known'),
        estimatedFillTimeSec: z.number().describe('Seconds until it arrives, as the bridge estimates'),
        expiresAt: z
          .string()
          .nullable()
          .describe('Until when the offer holds (ISO 8601); null: it has no end'),
        provider: z.enum(['cctp', 'lifi']).describe('Circle’s CCTP, or LI.FI'),
        tool: outsiderText(100).describe('The bridge that carries it'),
        tokenReceived: outsiderText(100).describe('The token that arrives'),
      })
      .describe('What the bridge offers'),
    recipient: z.string().nullable().describe('Who receives on toChain; null where nobody was named'),
    simulation: z
      .object({
        success: z.boolean().describe('Whether the trial run went through'),
        revertReason: outsiderText(300)
          .nullable()
          .describe('Why the trial run failed; null where it did not'),
        assumes: z.string().nullable().describe('What the trial run took for given; null: nothing'),
      })
      .nullable()
      .describe('Null where it could not be tried out, with the reason in notes'),
    preflight: ownCheck.describe(
      'The check of transaction-preflight for what is signed first: approval where it is needed, else transaction; null without fromAddress',
    ),
    nextSteps: z.array(z.string()).describe('What to do next, in order'),
    unsigned: z.literal(true).describe('Always: signing and sending are the caller’s'),
  }),
  example: {
    fromChain: 'base',
    toChain: 'arbitrum',
    token: 'USDC',
    amount: '100',
    fromAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    recipient: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  },
  aliases: {
    tokenAddress: 'token',
    currency: 'token',
    symbol: 'token',
    fromToken: 'token',
    toAddress: 'recipient',
    recipientAddress: 'recipient',
    walletAddress: 'fromAddress',
    sender: 'fromAddress',
    sourceChain: 'fromChain',
    destinationChain: 'toChain',
    slippage: 'slippagePercent',
  },
  needs: [['cctp', 'lifi']],
  uses: EVM_CHAIN_NAMES,
  timeoutMs: 25_000,
  async run(input, { upstreams, nowMs }) {
    const { fromChain, toChain } = input;
    if (fromChain === 'solana' || toChain === 'solana') {
      throw noAnswer(
        'CHAIN_NOT_SUPPORTED',
        'Transfers from and to solana are not built here.',
        fromChain === 'solana' ? 'fromChain' : 'toChain',
      );
    }
    const usdcs = [evmChainFacts(fromChain).usdc, evmChainFacts(toChain).usdc] as const;
    const isUsdc = (written: string, address: Address) =>
      /^usdc$/i.test(written) || written.toLowerCase() === address.toLowerCase();
    const notes: string[] = [];
    const { head, recipient } = await parties(fromChain, input, upstreams, notes);
    const bySelf =
      isUsdc(input.token, usdcs[0]) &&
      (input.toToken === undefined || isUsdc(input.toToken, usdcs[1])) &&
      DOMAINS[fromChain] !== undefined &&
      DOMAINS[toChain] !== undefined;
    const made = bySelf
      ? await burned({ ...input, fromChain, toChain, head, recipient, notes }, upstreams)
      : await relayed({ ...input, fromChain, toChain, recipient, notes }, upstreams, nowMs());
    const preflight = await firstChecked(head, input.fromAddress, made.fields, nowMs());
    return { ...made, fields: { ...made.fields, preflight } };
  },
});

interface Unsigned {
  to: Address;
  data: string | null;
  value: string;
}

/** Holds what is signed first against the check that is sold. */
async function firstChecked(
  head: ChainHead | null,
  from: Address | undefined,
  made: { transaction: Unsigned; approval: (Unsigned & { needed: boolean | null }) | null },
  nowMs: number,
) {
  const { to, data, value } = made.approval?.needed === true ? made.approval : made.transaction;
  if (head === null || from === undefined || !isHex(data)) return null;
  return checkOwn(head, { from, to, value: BigInt(value), data }, nowMs);
}

interface Asked extends AskedAmount {
  fromChain: EvmChainName;
  toChain: EvmChainName;
  token: string;
  fromAddress?: Address | undefined;
  toToken?: string | undefined;
  slippagePercent: number;
  speed: 'fast' | 'standard';
  recipient: Address | null;
  notes: string[];
}

/** The sending chain, if it is configured, and the recipient. */
async function parties(
  fromChain: EvmChainName,
  input: { fromAddress?: Address | undefined; recipient?: Address | undefined },
  upstreams: Pick<Upstreams, EvmChainName>,
  notes: string[],
): Promise<{ head: ChainHead | null; recipient: Address | null }> {
  const head = await headOf(upstreams[fromChain]).catch((error: unknown) => {
    if (isNotConfigured(error)) return null;
    throw error;
  });
  const { fromAddress } = input;
  let recipient = input.recipient ?? null;
  if (recipient === null && fromAddress !== undefined) {
    const code = head === null ? undefined : await head.chain.client.getCode({ address: fromAddress });
    if (head === null || code !== undefined) {
      notes.push(
        'fromAddress is not taken as the recipient: a contract there need not be yours on the other chain. Give recipient.',
      );
    } else {
      recipient = fromAddress;
      notes.push('The recipient is fromAddress, since none was given.');
    }
  }
  if (head !== null) {
    const wasAsked = await refuseListed(head.chain, [
      ...partyOf(recipient, { field: 'recipient', code: 'RECIPIENT_SANCTIONED' }),
      ...partyOf(fromAddress ?? null, { field: 'fromAddress', code: 'SENDER_SANCTIONED' }),
    ]);
    if (recipient !== null && !wasAsked)
      notes.push(`The recipient was not held against sanctions lists: there is no oracle on ${fromChain}.`);
  }
  return { head, recipient };
}

function partyOf(address: Address | null, told: Omit<Party, 'address'>): Party[] {
  return address === null ? [] : [{ address, ...told }];
}

/** A transfer of USDC, burned and minted by Circle's own contracts. Its call data is built here. */
async function burned(asked: Asked & { head: ChainHead | null }, upstreams: Pick<Upstreams, 'cctp'>) {
  const { fromChain, toChain, head, recipient, fromAddress, notes } = asked;
  const amountMicros = inSmallestUnit(asked, USDC_DECIMALS, 'USDC');
  if (amountMicros > MOST_PER_BURN_MICROS) {
    throw noAnswer('AMOUNT_TOO_LARGE', 'One burn takes 10,000,000 USDC at most.', 'amount');
  }
  const [source, destination] = [DOMAINS[fromChain], DOMAINS[toChain]];
  if (source === undefined || destination === undefined) throw new Error('checked before');
  const { value: fees, source: feeSource } = await upstreams.cctp.fees(source, destination);
  if (fees === null)
    throw noAnswer('NO_ROUTE', `Circle has no route from ${fromChain} to ${toChain}.`, 'toChain');
  const sources: Source[] = [feeSource];
  let speed = asked.speed;
  if (speed === 'fast' && fees.fastBasisPoints === null) {
    speed = 'standard';
    notes.push(`There is no fast transfer from ${fromChain}: it waits for finality.`);
  }
  if (speed === 'fast') {
    const allowed = await heard(() => upstreams.cctp.fastAllowance());
    if (allowed instanceof UpstreamUnavailable) notes.push('Whether enough may go fast now is not known.');
    else {
      sources.push(allowed.source);
      if (allowed.value.allowance * 1e6 < Number(amountMicros)) {
        speed = 'standard';
        notes.push(`Only ${allowed.value.allowance} USDC may go fast at the moment: it waits for finality.`);
      }
    }
  }
  const basisPoints = (speed === 'fast' ? fees.fastBasisPoints : fees.finalBasisPoints) ?? 0;
  const { feeMicros, maxFeeMicros } = burnFee(amountMicros, basisPoints);
  if (maxFeeMicros >= amountMicros)
    throw noAnswer('AMOUNT_TOO_SMALL', 'The fee would take all of it.', 'amount');

  const { usdc, chainId } = evmChainFacts(fromChain);
  const data =
    recipient === null
      ? null
      : burnCall({ amountMicros, domain: destination, recipient, usdc, maxFeeMicros, speed });
  const approve = encodeFunctionData({
    abi: erc20Abi,
    functionName: 'approve',
    args: [TOKEN_MESSENGER, amountMicros],
  });
  const trial = await triedBurn(head, fromAddress, data, amountMicros, notes);
  const usdcOf = (micros: bigint) => formatUnits(micros, USDC_DECIMALS);
  if (basisPoints > 0)
    notes.push(`The fee may rise until it is burned: at most ${usdcOf(maxFeeMicros)} USDC are offered.`);
  notes.push(
    'estimatedFillTimeSec is by Circle’s documentation. The quote has no end of its own: a fee above the offer makes it wait for finality.',
  );
  if (head !== null) sources.push(head.source);
  return answer(
    {
      ...sentOf(amountMicros, USDC_DECIMALS),
      transaction: { to: TOKEN_MESSENGER, data, value: '0x0', chainId, gas: trial.gas },
      approval: { to: usdc, data: approve, value: '0x0', chainId, gas: null, needed: trial.approvalNeeded },
      template:
        recipient !== null
          ? null
          : {
              function: BURN_SIGNATURE,
              arguments: {
                amount: amountMicros.toString(),
                destinationDomain: String(destination),
                mintRecipient: null,
                burnToken: usdc,
                destinationCaller: numberToHex(0, { size: 32 }),
                maxFee: maxFeeMicros.toString(),
                minFinalityThreshold: String(THRESHOLD[speed]),
              },
              fill: ['mintRecipient: your address on toChain, left-padded with zeros to 32 bytes'],
            },
      quote: {
        inputAmount: usdcOf(amountMicros),
        outputAmount: usdcOf(amountMicros - feeMicros),
        minOutputAmount: usdcOf(amountMicros - maxFeeMicros),
        totalFeePct: (Number(feeMicros) / Number(amountMicros)) * 100,
        estimatedFillTimeSec: FILL_SECONDS[speed],
        expiresAt: null,
        provider: 'cctp' as const,
        tool: `CCTP v2, ${speed}`,
        tokenReceived: evmChainFacts(toChain).usdc,
      },
      recipient,
      simulation: trial.simulation,
      nextSteps: [
        ...(trial.approvalNeeded === false ? [] : ['Sign and send approval, and wait until it is mined.']),
        'Sign and send transaction: it burns the USDC.',
        `Ask https://iris-api.circle.com/v2/messages/${source}?transactionHash=<hash> until the status is complete.`,
        `Anybody may then call receiveMessage(message, attestation) on ${MESSAGE_TRANSMITTER} on ${toChain}: it mints for the recipient alone.`,
      ],
    },
    {
      method:
        'Circle CCTP v2 depositForBurn, built here; fee by Circle’s API in basis points, rounded up, and a fifth more as the most that is offered. Nothing was signed or sent.',
      sources,
      notes,
    },
  );
}

async function triedBurn(
  head: ChainHead | null,
  from: Address | undefined,
  data: Hex | null,
  amountMicros: bigint,
  notes: string[],
) {
  const untried = (why: string) => {
    notes.push(`simulation is null: ${why}.`);
    return { simulation: null, gas: null, approvalNeeded: null };
  };
  if (head === null) return untried('the chain is not configured here');
  const { chain } = head;
  if ((await chain.client.getCode({ address: TOKEN_MESSENGER })) === undefined) {
    throw new ServiceFailure({
      status: 502,
      code: 'BRIDGE_MISSING',
      message: `There is no contract at ${TOKEN_MESSENGER} on ${chain.name}: no transaction that calls it is given out.`,
    });
  }
  if (from === undefined || data === null) return untried('it needs fromAddress and a recipient');
  const allowance = await chain.client.readContract({
    address: chain.usdc,
    abi: erc20Abi,
    functionName: 'allowance',
    args: [from, TOKEN_MESSENGER],
  });
  const approvalNeeded = allowance < amountMicros;
  const stateDiff = [{ slot: allowanceSlot(from, TOKEN_MESSENGER), value: allowanceOf(amountMicros) }];
  const overrides = approvalNeeded ? [{ address: chain.usdc, stateDiff }] : undefined;
  const made: Call = { from, to: TOKEN_MESSENGER, value: 0n, data };
  const { success, gas, revertReason } = await tryCall(chain, made, overrides);
  return {
    simulation: { success, revertReason, assumes: approvalNeeded ? 'that approval has been mined' : null },
    gas: gas === null ? null : numberToHex(gas + gas / 5n),
    approvalNeeded,
  };
}

/** A transfer of any other token, by a transaction that LI.FI builds and this server checks. */
async function relayed(asked: Asked, upstreams: Pick<Upstreams, 'lifi' | EvmChainName>, nowMs: number) {
  const { fromChain, toChain, recipient, fromAddress, notes } = asked;
  if (fromAddress === undefined) {
    throw noAnswer(
      'SENDER_NEEDED',
      'Any token but USDC needs fromAddress: the transaction is built for who signs it.',
      'fromAddress',
    );
  }
  if (recipient === null) {
    throw noAnswer('RECIPIENT_NEEDED', 'Give recipient: who is to receive on toChain.', 'recipient');
  }
  const { chain, blockNumber, source } = await namedChain(fromChain, upstreams);
  const sent = tokenOn(fromChain, asked.token, 'token');
  const received = tokenOn(toChain, asked.toToken ?? sent.symbol ?? '', 'toToken');
  const isNative = sent.address === zeroAddress;
  const decimals = isNative
    ? 18
    : ((await readTokens(chain, [sent.address], blockNumber)).get(sent.address.toLowerCase())?.decimals ??
      null);
  if (decimals === null)
    throw noAnswer('UNKNOWN_TOKEN', `There is no token at ${sent.address} on ${fromChain}.`, 'token');
  const amountRaw = inSmallestUnit(asked, decimals, sent.symbol ?? 'The token');
  const request = {
    fromChainId: evmChainFacts(fromChain).chainId,
    toChainId: evmChainFacts(toChain).chainId,
    fromToken: sent.address,
    toToken: received.address,
    fromAmount: amountRaw,
    fromAddress,
    toAddress: recipient,
    slippage: asked.slippagePercent / 100,
  };
  const { value: quote, source: quoteSource } = await upstreams.lifi.quote(request);
  if (quote === null)
    throw noAnswer('NO_ROUTE', `LI.FI knows no route for this from ${fromChain} to ${toChain}.`, 'token');
  const faults = faultsOf(request, fromChain, quote);
  if (faults.length > 0) {
    throw new ServiceFailure({
      status: 502,
      code: 'QUOTE_REFUSED',
      message: `The quote of LI.FI does not do what was asked, so it is not handed on: ${faults.join(', ')}.`,
    });
  }
  if ((await chain.client.getCode({ address: LIFI_DIAMOND })) === undefined) {
    throw new ServiceFailure({
      status: 502,
      code: 'BRIDGE_MISSING',
      message: `There is no contract at ${LIFI_DIAMOND} on ${chain.name}: no transaction that calls it is given out.`,
    });
  }
  const { transactionRequest, estimate, action } = quote;
  const allowance = isNative
    ? null
    : await chain.client.readContract({
        address: sent.address,
        abi: erc20Abi,
        functionName: 'allowance',
        args: [fromAddress, LIFI_DIAMOND],
      });
  const approvalNeeded = allowance === null ? false : allowance < amountRaw;
  const made: Call = {
    from: fromAddress,
    to: LIFI_DIAMOND,
    value: transactionRequest.value,
    data: transactionRequest.data as Hex,
  };
  const trial = approvalNeeded ? null : await tryCall(chain, made);
  if (trial === null) notes.push('simulation is null: it cannot be tried out before the approval is mined.');
  const [paid, got] = [estimate.fromAmountUSD, estimate.toAmountUSD];
  const totalFeePct = paid === null || got === null || paid === 0 ? null : (1 - got / paid) * 100;
  if (totalFeePct === null) notes.push('totalFeePct is null: LI.FI does not say what the amounts are worth.');
  notes.push(
    'Prices move: sign within a minute, or ask again. Below minOutputAmount the transfer fails or is paid back by the bridge.',
  );
  const units = (raw: bigint) => formatUnits(raw, action.toToken.decimals);
  return answer(
    {
      ...sentOf(amountRaw, decimals),
      transaction: {
        to: LIFI_DIAMOND,
        data: transactionRequest.data,
        value: numberToHex(transactionRequest.value),
        chainId: chain.chainId,
        gas: trial?.success === true ? numberToHex(trial.gas + trial.gas / 5n) : null,
      },
      approval: isNative
        ? null
        : {
            to: sent.address,
            data: encodeFunctionData({
              abi: erc20Abi,
              functionName: 'approve',
              args: [LIFI_DIAMOND, amountRaw],
            }),
            value: '0x0',
            chainId: chain.chainId,
            gas: null,
            needed: approvalNeeded,
          },
      template: null,
      quote: {
        inputAmount: formatUnits(amountRaw, decimals),
        outputAmount: units(estimate.toAmount),
        minOutputAmount: units(estimate.toAmountMin),
        totalFeePct,
        estimatedFillTimeSec: estimate.executionDuration,
        expiresAt: new Date(nowMs + 60_000).toISOString(),
        provider: 'lifi' as const,
        tool: quote.tool,
        tokenReceived: received.address,
      },
      recipient,
      simulation:
        trial === null ? null : { success: trial.success, revertReason: trial.revertReason, assumes: null },
      nextSteps: [
        ...(approvalNeeded
          ? ['Sign and send approval, and wait until it is mined.', 'Ask again: quotes do not last.']
          : []),
        'Sign and send transaction.',
        `Ask https://li.quest/v1/status?txHash=<hash>&bridge=${encodeURIComponent(quote.tool)} how far it is.`,
      ],
    },
    {
      method:
        'A quote of LI.FI, held against the request field by field (chains, tokens, amount, sender, recipient, slippage, value, the contract that is called and that gets the allowance), and the transaction’s own data decoded and held against both. Nothing was signed or sent.',
      sources: [quoteSource, source],
      notes,
    },
  );
}

/** The amount that is sent, in both units, when the sender has still to sign. */
function sentOf(raw: bigint, decimals: number) {
  return { amount: formatUnits(raw, decimals), amountRaw: String(raw), unsigned: true as const };
}

/** A token by ticker or address; the zero address is the chain's own coin. */
function tokenOn(
  name: EvmChainName,
  written: string,
  field: string,
): { address: Address; symbol: string | null } {
  const { tokens, nativeSymbol } = evmChainFacts(name);
  if (isEvmAddress(written)) {
    const known = tokens.find(({ address }) => address.toLowerCase() === written.toLowerCase());
    const isNative = /^0x(0{40}|e{40})$/i.test(written);
    if (isNative) return { address: zeroAddress, symbol: nativeSymbol };
    return known ?? { address: written, symbol: null };
  }
  const symbol = written.replace(/^\$/, '');
  if (symbol.toUpperCase() === nativeSymbol) return { address: zeroAddress, symbol: nativeSymbol };
  const found = tokens.find((token) => token.symbol.toUpperCase() === symbol.toUpperCase());
  if (found === undefined) {
    throw noAnswer(
      'UNKNOWN_TOKEN',
      `${symbol === '' ? 'What is to be received' : symbol} is not among the tokens known on ${name}: give its address. Known are ${[nativeSymbol, ...tokens.map((token) => token.symbol)].join(', ')}.`,
      field,
    );
  }
  return found;
}
