import { chainName, outsiderText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { notFound } from '@farebox/core/words/failure';
import { decodeFunctionData, encodeFunctionData, erc20Abi, type Hex, isAddress } from 'viem';
import { z } from 'zod';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { checkOwn, ownCheck } from '../shared/preflight/own-check.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';
import { type Party, refuseListed } from '../shared/wallet/wallet-sanctions.ts';
import {
  type Call,
  currentFees,
  estimateFee,
  gasLimit,
  LESS_THAN_THE_VALUE,
  quantity,
  type Trial,
  tryCall,
  unsigned,
} from '../shared/wallet/wallet-transaction.ts';

/** The most hex digits of call data: more than any chain accepts in one transaction. */
const MOST_DATA_DIGITS = 262_144;
const MAX_UINT256 = 2n ** 256n - 1n;
const METHOD =
  'eth_estimateGas on the newest state is the trial run; gas is that and 20 % (a plain transfer needs none); the tip is the median of the last 10 blocks, maxFeePerGas twice the next base fee and the tip. Nothing was signed or sent.';

const WHOLE = /^(\d{1,78}|0x[0-9a-fA-F]{1,64})$/;
const wei = z
  .preprocess(
    (value) => (typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value),
    z.string().trim().regex(WHOLE, 'must be a whole number, in decimal or as 0x hex'),
  )
  .refine((value) => !WHOLE.test(value) || BigInt(value) <= MAX_UINT256, 'is more than 2^256 - 1')
  .default('0')
  .describe('Wei to send; with tokenAddress, the amount in the smallest unit of the token');

const callData = z
  .string()
  .trim()
  .max(MOST_DATA_DIGITS + 2)
  .regex(/^(0x([0-9a-fA-F]{2})*)?$/, 'must be 0x and an even number of hex digits')
  .transform((data): Hex => (data === '' ? '0x' : `0x${data.slice(2).toLowerCase()}`))
  .default('0x')
  .describe('Call data in hex; none for a plain transfer');

export default defineService({
  path: 'transaction-builder',
  name: 'Transaction Builder',
  tag: 'Execution',
  priceUsd: '0.30',
  summary:
    'An unsigned EIP-1559 transaction, ready to be signed: nonce, gas and fees from the chain, and what a trial run says.',
  keywords:
    'build prepare create construct raw unsigned transaction send transfer eth ether coin sign signing offline calldata nonce contract call encode hex',
  input: z
    .object({
      fromAddress: evmAddress('Who will sign and send it: 0x and 40 hex digits'),
      toAddress: evmAddress('Recipient, or the contract to call: 0x and 40 hex digits'),
      chain: chainName,
      value: wei,
      data: callData,
      amount: z
        .undefined({
          error: 'is not taken here: send value, in wei, or with tokenAddress in its smallest unit',
        })
        .optional()
        .describe('Not taken: elsewhere it counts whole tokens, and `value` counts the smallest unit'),
      tokenAddress: evmAddress(
        'An ERC-20 token to transfer instead: `value` units of it to toAddress',
      ).optional(),
    })
    .refine(({ tokenAddress, data }) => tokenAddress === undefined || data === '0x', {
      path: ['data'],
      message: 'must not be given with tokenAddress: the transfer is the call',
    }),
  output: z.object({
    chain: z.enum(EVM_CHAIN_NAMES).describe('The chain, by name'),
    transaction: z
      .object({
        chainId: z.number().int().describe('EIP-155 id of the chain'),
        from: z.string().describe('The sender'),
        to: z.string().describe('The recipient, or the contract that is called'),
        value: quantity,
        data: z.string().describe('Call data in hex'),
        nonce: z.number().int().describe('Counts transactions that still wait to be mined'),
        gas: quantity.nullable().describe('Null when the trial run failed: what fails cannot be measured'),
        maxFeePerGas: quantity,
        maxPriorityFeePerGas: quantity,
        type: z.number().int().describe('2: EIP-1559'),
      })
      .describe('The unsigned transaction'),
    gasEstimate: z
      .number()
      .int()
      .nullable()
      .describe('What the trial run took; transaction.gas has a margin'),
    gasEstimateUsd: z.number().nonnegative().nullable().describe('Fee in USD at the next base fee'),
    simulation: z
      .object({
        success: z.boolean().describe('Whether the trial run went through'),
        revertReason: outsiderText(300).nullable().describe('Why it would fail, in at most 200 characters'),
      })
      .describe('A trial run of it'),
    unsignedSerialized: z
      .string()
      .nullable()
      .describe('EIP-2718, without a signature; null when gas is null'),
    preflight: ownCheck,
    blockNumber: z.number().int().describe('The newest block when it was built'),
  }),
  example: {
    fromAddress: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    toAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    chain: 'base',
    value: '1000000000000000',
  },
  aliases: {
    from: 'fromAddress',
    sender: 'fromAddress',
    to: 'toAddress',
    recipient: 'toAddress',
    network: 'chain',
    chainId: 'chain',
    amountRaw: 'value',
    input: 'data',
    calldata: 'data',
    token: 'tokenAddress',
    contractAddress: 'tokenAddress',
  },
  needs: [EVM_CHAIN_NAMES],
  uses: ['defillama'],
  async run(input, { upstreams, nowMs }) {
    const head = await namedChain(input.chain, upstreams);
    const { chain, blockNumber } = head;
    const { fromAddress: from, toAddress, tokenAddress, data } = input;
    const value = BigInt(input.value);
    const call: Call =
      tokenAddress === undefined
        ? { from, to: toAddress, value, data }
        : {
            from,
            to: tokenAddress,
            value: 0n,
            data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [toAddress, value] }),
          };
    const [code, balance, nonce, fees, tried, preflight, wasAsked] = await Promise.all([
      chain.client.getCode({ address: call.to }),
      chain.client.getBalance({ address: from }),
      chain.client.getTransactionCount({ address: from, blockTag: 'pending' }),
      currentFees(chain),
      tryCall(chain, call),
      checkOwn(head, call, nowMs()),
      refuseListed(chain, [
        { address: toAddress, field: 'toAddress', code: 'RECIPIENT_SANCTIONED' },
        ...tokenParties(data),
        { address: from, field: 'fromAddress', code: 'SENDER_SANCTIONED' },
      ]),
    ]);
    if (tokenAddress !== undefined && code === undefined) {
      throw notFound('tokenAddress', `There is no contract at ${tokenAddress} on ${chain.name}.`);
    }

    const trial: Trial =
      balance < call.value ? { success: false, gas: null, revertReason: LESS_THAN_THE_VALUE } : tried;
    const notes: string[] = [];
    if (!wasAsked) {
      notes.push(
        `Sender and recipient were not held against sanctions lists: there is no oracle on ${chain.name}.`,
      );
    }
    if (call.data !== '0x' && code === undefined) {
      notes.push(`There is no contract at ${call.to} on ${chain.name}: the data does nothing there.`);
    }
    if (tokenAddress !== undefined && tokenAddress === toAddress) {
      notes.push("toAddress is the token's own contract: tokens sent there are usually lost.");
    }
    const common = { chain: chain.name, preflight, blockNumber: Number(blockNumber) };
    const simulation = { success: trial.success, revertReason: trial.revertReason };
    if (!trial.success) {
      notes.push('gas, gasEstimateUsd and unsignedSerialized are null: the trial run failed.');
      const { transaction } = unsigned(chain, call, nonce, 0n, fees);
      return answer(
        {
          ...common,
          transaction: { ...transaction, gas: null },
          gasEstimate: null,
          gasEstimateUsd: null,
          simulation,
          unsignedSerialized: null,
        },
        { method: METHOD, sources: [head.source], notes },
      );
    }

    const gas = gasLimit(trial.gas);
    const { transaction, unsignedSerialized } = unsigned(chain, call, nonce, gas, fees);
    const fee = await estimateFee(
      head,
      { gas: trial.gas, serialized: unsignedSerialized, fees },
      upstreams,
      nowMs(),
    );
    if (balance < call.value + gas * fees.maxFeePerGas) {
      notes.push(`The sender's ${balance} wei do not cover the value and the most that the gas may cost.`);
    }
    return answer(
      {
        ...common,
        transaction,
        gasEstimate: Number(trial.gas),
        gasEstimateUsd: fee.feeUsd,
        simulation,
        unsignedSerialized,
      },
      { method: METHOD, sources: [head.source, ...fee.sources], notes: [...notes, ...fee.notes] },
    );
  },
});

/** Those who get tokens or an allowance by call data of ERC-20's own functions; nobody by other data. */
function tokenParties(data: Hex): Party[] {
  try {
    const { functionName, args = [] } = decodeFunctionData({ abi: erc20Abi, data });
    // To take an allowance away is open to everybody.
    if (functionName === 'approve' && args[1] === 0n) return [];
    return args.flatMap((value): Party[] =>
      typeof value === 'string' && isAddress(value)
        ? [{ address: value, field: 'data', code: 'RECIPIENT_SANCTIONED' }]
        : [],
    );
  } catch {
    return [];
  }
}
