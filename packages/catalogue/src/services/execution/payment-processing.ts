import { chainName, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, sourceUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { type AskedAmount, isOneAmount, movedAmount, movedAmountRaw } from '../shared/chain/token-amount.ts';
import { checkOwn, ownCheck } from '../shared/preflight/own-check.ts';
import { evmAddress, isEvmAddress, walletAddress } from '../shared/wallet/wallet-address.ts';
import { type EvmChains, headOf, isNotConfigured, namedChain } from '../shared/wallet/wallet-chains.ts';
import { CURRENCY, evmPayment, solanaPayment, usdcDecimals } from '../shared/wallet/wallet-payment.ts';
import { estimateFee, quantity } from '../shared/wallet/wallet-transaction.ts';

const isMerchantForm = (input: AskedAmount & { recipient?: unknown; merchantId?: unknown }) =>
  input.merchantId !== undefined &&
  input.amount === undefined &&
  input.amountRaw === undefined &&
  input.recipient === undefined;

const option = z.object({
  currency: z.string().describe('The currency'),
  chain: z.enum(CHAINS).describe('The chain, by name'),
  contract: z.string().describe("The token's contract; its mint on solana"),
  decimals: z.number().int().describe('Decimal places of the smallest unit'),
  payTo: z.string().nullable().describe('Who is paid; null where this server knows nobody'),
});

export default defineService({
  path: 'payment-processing',
  name: 'Payment Processing',
  tag: 'Execution',
  priceUsd: '0.50',
  summary:
    'A USDC payment made ready for the payer to sign: unsigned transfer, payment URI, fee and sanctions check. No money moves here.',
  keywords:
    'pay payment invoice bill checkout charge customer merchant accept receive request money usdc link qr transfer shop send someone payout salary vendor',
  input: z
    .object({
      amount: movedAmount.describe('USDC to pay, in whole units, such as "12.50"').optional(),
      amountRaw: movedAmountRaw.optional(),
      recipient: walletAddress('Who is to be paid: an address on the chain').optional(),
      chain: chainName.optional(),
      currency: text(10, 'USDC, which is the only one').optional(),
      fromAddress: evmAddress(
        'Who will pay (EVM): the transfer is then complete, and tried out for that wallet',
      ).optional(),
      merchantId: text(100, 'Without amount and recipient: asks where USDC can be paid').optional(),
      paymentType: text(50, 'Echoed').optional(),
      currencies: z
        .array(text(10, 'A currency'))
        .max(20)
        .optional()
        .describe('With merchantId: those it takes'),
    })
    .refine((input) => isMerchantForm(input) || isOneAmount(input), {
      path: ['amount'],
      message:
        'is required, or amountRaw in its place, and not both (or a merchantId without amount and recipient)',
    })
    .refine((input) => isMerchantForm(input) || input.recipient !== undefined, {
      path: ['recipient'],
      message: 'is required',
    })
    .refine((input) => isMerchantForm(input) || input.chain !== undefined, {
      path: ['chain'],
      message: 'is required',
    })
    .refine(
      ({ recipient, chain }) =>
        recipient === undefined || chain === undefined || (chain === 'solana') !== isEvmAddress(recipient),
      { path: ['recipient'], message: 'is not an address of this chain' },
    )
    .meta({
      anyOf: [
        { required: ['amount', 'recipient', 'chain'] },
        { required: ['amountRaw', 'recipient', 'chain'] },
        { required: ['merchantId'] },
      ],
    }),
  output: z.object({
    status: z.literal('unsigned').describe("Always: signing, sending and settling are the payer's"),
    amount: z.string().nullable().describe('USDC in whole units'),
    amountRaw: z.string().nullable().describe('In the smallest unit'),
    currency: z.string().describe('The currency'),
    recipient: z.string().nullable().describe('Who is to be paid; null in the merchant form'),
    chain: z.enum(CHAINS).nullable().describe('The chain; null in the merchant form'),
    merchantId: z.string().nullable().describe('As asked; null where none was given'),
    paymentType: z.string().nullable().describe('As asked; null where none was given'),
    transaction: z
      .object({
        chainId: z.number().int().describe('EIP-155 id of the chain'),
        from: z.string().optional().describe('Who pays'),
        to: z.string().describe('The token’s contract'),
        value: quantity,
        data: z.string().describe('Call data in hex'),
        nonce: z.number().int().optional().describe('Number of the transaction for its sender'),
        gas: quantity.optional(),
        maxFeePerGas: quantity,
        maxPriorityFeePerGas: quantity,
        type: z.number().int().describe('2: EIP-1559'),
      })
      .nullable()
      .describe('The transfer; from and nonce only with fromAddress, gas only where it could be measured'),
    unsignedSerialized: z
      .string()
      .nullable()
      .describe('EIP-2718, without a signature; only with fromAddress'),
    paymentUri: z.string().nullable().describe('For wallets: EIP-681, or Solana Pay on solana'),
    simulation: z
      .object({
        success: z.boolean().describe('Whether the trial run went through'),
        revertReason: outsiderText(300)
          .nullable()
          .describe('Why the trial run failed; null where it did not'),
      })
      .nullable()
      .describe('Trial run for fromAddress; null without one'),
    estimatedFeeUsd: z.number().nonnegative().nullable().describe("The chain's fee, on top of the amount"),
    preflight: ownCheck,
    recipientSanctioned: z
      .boolean()
      .nullable()
      .describe('By the Chainalysis oracle of this chain; null: nobody could be asked'),
    paymentOptions: z.array(option).describe('Merchant form: where and with what can be paid'),
  }),
  example: {
    amount: '12.50',
    recipient: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    chain: 'base',
  },
  aliases: {
    recipientAddress: 'recipient',
    to: 'recipient',
    toAddress: 'recipient',
    payTo: 'recipient',
    network: 'chain',
    chainId: 'chain',
    token: 'currency',
    from: 'fromAddress',
    payer: 'fromAddress',
    payerAddress: 'fromAddress',
  },
  needs: [EVM_CHAIN_NAMES],
  uses: ['defillama'],
  async run(input, { upstreams, nowMs }) {
    const wanted = (input.currencies ?? [input.currency ?? CURRENCY]).map((one) => one.toUpperCase());
    if (!wanted.includes(CURRENCY)) {
      throw noAnswer('CURRENCY_NOT_SUPPORTED', `Only ${CURRENCY} can be paid.`, 'currency');
    }
    const echo = {
      status: 'unsigned' as const,
      currency: CURRENCY,
      merchantId: input.merchantId ?? null,
      paymentType: input.paymentType ?? null,
    };
    const { recipient, chain } = input;
    if (!isOneAmount(input) || recipient === undefined || chain === undefined) {
      const { options, sources, notes } = await whereToPay(chain, upstreams);
      const others = wanted.filter((one) => one !== CURRENCY);
      if (others.length > 0) notes.push(`Only ${CURRENCY} can be paid, not: ${others.join(', ')}.`);
      notes.push('merchantId is only echoed: no directory of merchants was asked, so payTo is null.');
      return answer(
        { ...echo, ...NO_PAYMENT, paymentOptions: options },
        { method: 'The USDC contract of each chain was read. Nothing was paid.', sources, notes },
      );
    }
    if (!isEvmAddress(recipient)) {
      const payment = solanaPayment(input, recipient);
      return answer(
        { ...echo, ...NO_PAYMENT, ...payment },
        {
          method: 'A Solana Pay transfer request, made by this server itself. Nothing was signed or sent.',
          notes: [
            "transaction is null: on solana the payer's wallet makes it from paymentUri.",
            'recipientSanctioned is null: solana has no oracle to ask. estimatedFeeUsd is null: it was not measured.',
            'recipient must be a wallet, not a token account; that was not checked.',
          ],
        },
      );
    }
    const head = await namedChain(chain, upstreams);
    const payment = await evmPayment(head.chain, input, recipient, input.fromAddress ?? null);
    const { trial, serialized, fees, notes, call, ...fields } = payment;
    const preflight = input.fromAddress === undefined ? null : await checkOwn(head, call, nowMs());
    const fee = trial.success
      ? await estimateFee(head, { gas: trial.gas, serialized, fees }, upstreams, nowMs())
      : { feeUsd: null, sources: [], notes: ['estimatedFeeUsd is null: the gas could not be measured.'] };
    return answer(
      { ...echo, ...fields, chain: head.chain.name, recipient, estimatedFeeUsd: fee.feeUsd, preflight },
      {
        method:
          "ERC-20 transfer of the chain's USDC as call data and as an EIP-681 URI; gas by eth_estimateGas, with 20 % more. Nothing was signed, sent or settled.",
        sources: [head.source, ...fee.sources],
        notes: [...notes, ...fee.notes],
      },
    );
  },
});

const NO_PAYMENT = {
  amount: null,
  amountRaw: null,
  recipient: null,
  chain: null,
  transaction: null,
  unsignedSerialized: null,
  paymentUri: null,
  simulation: null,
  estimatedFeeUsd: null,
  preflight: null,
  recipientSanctioned: null,
};

/** The chains on which USDC can be paid: those that are configured and have its contract. */
async function whereToPay(
  only: ChainName | undefined,
  chains: EvmChains,
): Promise<{ options: z.input<typeof option>[]; sources: Source[]; notes: string[] }> {
  const names = EVM_CHAIN_NAMES.filter((name) => only === undefined || name === only);
  const notes: string[] = [];
  const found = await Promise.all(
    names.map(async (name) => {
      try {
        const [head, decimals] = await Promise.all([headOf(chains[name]), usdcDecimals(chains[name])]);
        const contract = chains[name].usdc;
        return [
          {
            source: head.source,
            option: { currency: CURRENCY, chain: name, contract, decimals, payTo: null },
          },
        ];
      } catch (error) {
        if (!isNotConfigured(error)) notes.push(`${name} could not be read.`);
        return [];
      }
    }),
  );
  const payable = found.flat();
  if (payable.length === 0) {
    if (notes.length > 0) {
      throw sourceUnavailable(names[0] ?? 'base', 'upstream_down', 'No chain could be read.');
    }
    throw noAnswer('CHAIN_NOT_CONFIGURED', `No such chain is configured here: ${only ?? 'none'}.`, 'chain');
  }
  return {
    options: payable.map(({ option }) => option),
    sources: payable.map(({ source }) => source),
    notes,
  };
}
