import { chainName, outsiderText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer, notFound } from '@farebox/core/words/failure';
import {
  type Address,
  encodeFunctionData,
  erc20Abi,
  formatUnits,
  numberToHex,
  parseAbiItem,
  parseUnits,
} from 'viem';
import { z } from 'zod';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { searchBack } from '../shared/chain/chain-logs.ts';
import { readTokens, type TokenFacts } from '../shared/chain/chain-token.ts';
import { amountRaw } from '../shared/chain/token-amount.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { type ChainHead, namedChain } from '../shared/wallet/wallet-chains.ts';
import { refuseListed } from '../shared/wallet/wallet-sanctions.ts';
import { gasLimit, quantity, type Trial, tryCall } from '../shared/wallet/wallet-transaction.ts';

const MAX_UINT256 = 2n ** 256n - 1n;
/** Some tokens keep allowances in 96 bits; for them this value means "unlimited". */
const MAX_UINT96 = 2n ** 96n - 1n;

/** How far back `list` looks, and in which steps: public nodes answer for no more. */
const LOG_WINDOW = { blocks: 50_000n, blocksPerRequest: 10_000n, requests: 12 };
const MOST_APPROVALS = 200;
const APPROVAL = parseAbiItem(
  'event Approval(address indexed owner, address indexed spender, uint256 value)',
);

const transaction = z.object({
  from: z.string().describe('The wallet that is to sign'),
  to: z.string().describe('The token’s contract'),
  data: z.string().describe('Call data in hex'),
  value: z.literal('0x0').describe('Always 0: no coin is sent'),
  chainId: z.number().int().describe('EIP-155 id of the chain'),
  gas: quantity.nullable().describe('Gas limit in hex; null where a trial run failed or none was made'),
});
type Unsigned = z.input<typeof transaction>;

export const output = z.object({
  action: z.enum(['approve', 'revoke', 'check', 'list']).describe('What was done'),
  chain: z.enum(EVM_CHAIN_NAMES).describe('The chain, by name'),
  ownerAddress: z.string().describe('The wallet that allows'),
  tokenAddress: z.string().nullable().describe('The token; null in list mode'),
  tokenSymbol: outsiderText(60).nullable().describe('Its ticker; null where nobody knows it'),
  spenderAddress: z.string().nullable().describe('Who may take it; null in list mode'),
  spenderIsContract: z.boolean().nullable().describe('False: the allowance is to somebody’s account'),
  currentAllowance: z.string().nullable().describe('In the smallest unit; null in list mode'),
  currentAllowanceFormatted: z.string().nullable().describe('In whole tokens'),
  isUnlimited: z.boolean().nullable().describe('Whether the current allowance is more than there are tokens'),
  amount: z
    .string()
    .nullable()
    .describe(
      'What `transaction` would allow, in whole tokens, or `unlimited`; null where decimals are not known',
    ),
  amountRaw: z.string().nullable().describe('What `transaction` would allow, in the smallest unit'),
  transaction: transaction.nullable().describe('Unsigned; null where only a reading was asked for'),
  revokeTransaction: transaction.nullable().describe('Unsigned, sets the allowance to 0; null in list mode'),
  simulation: z
    .object({
      success: z.boolean().describe('Whether the trial run went through'),
      revertReason: outsiderText(300).nullable().describe('Why the trial run failed; null where it did not'),
    })
    .nullable()
    .describe('A trial run of `transaction`'),
  approvals: z
    .array(
      z.object({
        tokenAddress: z.string().describe('Address of the token'),
        symbol: outsiderText(60).nullable().describe('Ticker; null where nobody knows it'),
        spender: z.string().describe('Who may take it'),
        allowance: z.string().describe('Now, in the smallest unit'),
        allowanceFormatted: z.string().nullable().describe('In whole tokens'),
        isUnlimited: z.boolean().describe('Whether it allows more than there are tokens'),
        blockNumber: z.number().int().describe('Of the newest Approval found for this token and spender'),
        revokeTransaction: transaction.describe('Unsigned, sets the allowance to 0'),
      }),
    )
    .nullable()
    .describe('List mode: allowances that were given in the window and stand now'),
  searchedFromBlock: z.number().int().nullable().describe('List mode: older approvals were not looked for'),
  blockNumber: z.number().int().describe('Where all of it was read'),
});

const asText = (value: unknown) => (typeof value === 'number' ? String(value) : value);
const AMOUNT = /^(unlimited|max|\d{1,78}(\.\d{1,36})?)$/i;
const lower = (value: unknown) => (typeof value === 'string' ? value.trim().toLowerCase() : value);

export default defineService({
  path: 'approval-manager',
  name: 'Token Approval Manager',
  tag: 'Trading Intelligence',
  priceUsd: '0.20',
  summary:
    'The allowance that a spender has of a wallet’s token, with unsigned transactions to set or revoke it; or the approvals a wallet gave lately.',
  keywords:
    'allowance allowances permission permissions spender allowed spend unlimited infinite revoke remove cancel withdraw grant approve permit contracts',
  input: z
    .object({
      ownerAddress: evmAddress('The wallet that allows: 0x and 40 hex digits'),
      chain: chainName,
      tokenAddress: evmAddress('The token. May be left out in list mode').optional(),
      spenderAddress: evmAddress('Who may take it. May be left out in list mode').optional(),
      amount: z
        .preprocess(
          asText,
          z
            .string()
            .trim()
            .regex(AMOUNT, 'must be a number of tokens with a point ("25.0"), or `unlimited`')
            // Elsewhere 25 means 25 tokens. Here a wrong guess would be a permanent allowance a million times too
            // large.
            .superRefine((written, context) => {
              if (!/^\d+$/.test(written) || /^0+$/.test(written)) return;
              const message = `may mean ${written} tokens or ${written} of the smallest unit: send "${written}.0" as a text for tokens, or amountRaw "${written}" for the smallest unit`;
              context.addIssue({ code: 'custom', message });
            }),
        )
        .optional()
        .describe(
          'To allow, in whole tokens and with a point ("25.0"); `unlimited`, which is the default, is 2^256 - 1',
        ),
      amountRaw: amountRaw.optional(),
      action: z
        .preprocess(lower, z.enum(['approve', 'revoke', 'check', 'list']))
        .optional()
        .describe('`list` unless both token and spender are given, `approve` if they are'),
    })
    .superRefine(({ action, tokenAddress, spenderAddress, amount, amountRaw: raw }, context) => {
      if (amount !== undefined && raw !== undefined)
        context.addIssue({ code: 'custom', path: ['amountRaw'], message: 'must not be given beside amount' });
      const given = tokenAddress !== undefined && spenderAddress !== undefined;
      if (given || action === 'list') return;
      if (action === undefined && tokenAddress === undefined && spenderAddress === undefined) return;
      for (const [field, value] of Object.entries({ tokenAddress, spenderAddress })) {
        const message = 'is needed unless action is `list`';
        if (value === undefined) context.addIssue({ code: 'custom', path: [field], message });
      }
    }),
  output,
  example: {
    tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    spenderAddress: '0x000000000022D473030F116dDEE9F6B43aC78BA3',
    ownerAddress: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    chain: 'base',
    amount: '25.0',
  },
  aliases: {
    token: 'tokenAddress',
    contractAddress: 'tokenAddress',
    spender: 'spenderAddress',
    owner: 'ownerAddress',
    walletAddress: 'ownerAddress',
    wallet: 'ownerAddress',
    address: 'ownerAddress',
    chainId: 'chain',
    network: 'chain',
  },
  needs: [EVM_CHAIN_NAMES],
  async run(input, { upstreams }) {
    const { ownerAddress: owner, tokenAddress, spenderAddress, action } = input;
    const head = await namedChain(input.chain, upstreams);
    if (tokenAddress === undefined || spenderAddress === undefined || action === 'list') {
      return listApprovals(head, owner, tokenAddress, spenderAddress);
    }
    const grant = { owner, token: tokenAddress, spender: spenderAddress };
    return oneApproval(head, grant, action ?? 'approve', input);
  },
});

interface Grant {
  owner: Address;
  token: Address;
  spender: Address;
}

const NO_CONTRACT =
  'The spender is no contract on this chain: whoever holds its key can take the tokens as soon as they are allowed.';

async function oneApproval(
  head: ChainHead,
  { owner, token, spender }: Grant,
  action: 'approve' | 'revoke' | 'check',
  asked: { amount?: string | undefined; amountRaw?: string | undefined },
) {
  const { chain, blockNumber, source } = head;
  const contract = { abi: erc20Abi, address: token, blockNumber } as const;
  const [tokens, code, [allowanceRead]] = await Promise.all([
    readTokens(chain, [token], blockNumber),
    chain.client.getCode({ address: spender, blockNumber }),
    chain.client.multicall({
      blockNumber,
      contracts: [{ ...contract, functionName: 'allowance', args: [owner, spender] }],
    }),
  ]);
  const facts = tokens.get(token.toLowerCase());
  const current = allowanceRead.result;
  if (facts === undefined || current === undefined) {
    throw notFound('tokenAddress', `At ${token} on ${chain.name} there is no token with allowances.`);
  }
  const amount = action === 'revoke' ? 0n : amountOf(asked, facts.decimals);
  // An allowance that a listed spender has can be read and taken away.
  if (amount > 0n && action === 'approve')
    await refuseListed(chain, [{ address: spender, field: 'spenderAddress', code: 'SPENDER_SANCTIONED' }]);
  const [wanted, revoked] = await Promise.all(
    [amount, 0n].map((value) =>
      tryCall(chain, { from: owner, to: token, value: 0n, data: approve(spender, value) }),
    ),
  );
  const isContract = code !== undefined && code !== '0x';
  const notes = [
    ...(action === 'approve' ? warningsOf(amount, current, facts) : []),
    ...(isContract ? [] : [NO_CONTRACT]),
    'No list of known frauds was asked about the spender.',
  ];
  const grant = { owner, token, spender };
  return answer(
    {
      action,
      chain: chain.name,
      ownerAddress: owner,
      tokenAddress: token,
      tokenSymbol: facts.symbol,
      spenderAddress: spender,
      spenderIsContract: isContract,
      currentAllowance: String(current),
      currentAllowanceFormatted: facts.decimals === null ? null : formatUnits(current, facts.decimals),
      isUnlimited: isUnlimited(current, facts),
      amount: action === 'check' ? null : shownAmount(amount, facts.decimals),
      amountRaw: action === 'check' ? null : String(amount),
      transaction: action === 'check' ? null : unsignedApproval(head, grant, amount, wanted),
      revokeTransaction: unsignedApproval(head, grant, 0n, revoked),
      simulation:
        action === 'check' || wanted === undefined
          ? null
          : { success: wanted.success, revertReason: wanted.revertReason },
      approvals: null,
      searchedFromBlock: null,
      blockNumber: Number(blockNumber),
    },
    {
      method:
        'allowance(owner, spender) of the token at one block; approve(spender, amount) encoded and run on trial from the owner’s ' +
        'address. Nothing was signed or sent.',
      sources: [source],
      notes,
    },
  );
}

/** What a signer of such an approval should know first. */
function warningsOf(amount: bigint, current: bigint, facts: TokenFacts): string[] {
  return [
    ...(isUnlimited(amount, facts)
      ? [
          'This allows the spender to take all of this token that the wallet holds, now and later. Allow what is needed, or revoke it afterwards.',
        ]
      : []),
    ...(current > 0n && amount > 0n
      ? [
          'An allowance stands already: the spender could take it before the new one counts, and then the new one too. Revoke first to be sure.',
        ]
      : []),
  ];
}

/** What a list does not tell. */
const OF_NO_SINGLE_ONE = {
  tokenSymbol: null,
  spenderIsContract: null,
  currentAllowance: null,
  currentAllowanceFormatted: null,
  isUnlimited: null,
  amount: null,
  amountRaw: null,
  transaction: null,
  revokeTransaction: null,
  simulation: null,
};

async function listApprovals(
  head: ChainHead,
  owner: Address,
  token: Address | undefined,
  spender: Address | undefined,
) {
  const { chain, blockNumber, source } = head;
  const query = {
    event: APPROVAL,
    args: { owner, ...(spender === undefined ? {} : { spender }) },
    ...(token === undefined ? {} : { address: token }),
    // Approvals of single NFTs have the same signature and another shape: those are left out.
    strict: true,
  } as const;
  const searched = await searchBack(
    (range) => chain.client.getLogs({ ...query, ...range }),
    blockNumber,
    LOG_WINDOW,
  );
  // The newest event comes first, so the first of each pair is the current one.
  const pairs = new Map<string, Grant & { atBlock: bigint }>();
  for (const { address, args, blockNumber: atBlock } of searched.found) {
    const key = `${address}:${args.spender}`.toLowerCase();
    if (!pairs.has(key)) pairs.set(key, { owner, token: address, spender: args.spender, atBlock });
  }
  const newest = [...pairs.values()].slice(0, MOST_APPROVALS);
  const [allowances, tokens] = await Promise.all([
    chain.client.multicall({
      blockNumber,
      contracts: newest.map(
        (grant) =>
          ({
            abi: erc20Abi,
            address: grant.token,
            functionName: 'allowance',
            args: [owner, grant.spender],
          }) as const,
      ),
    }),
    readTokens(
      chain,
      newest.map((grant) => grant.token),
      blockNumber,
    ),
  ]);
  const silent = allowances.filter(({ status }) => status === 'failure').length;
  const approvals = newest.flatMap((grant, index) => {
    const allowance = allowances[index]?.result;
    const facts = tokens.get(grant.token.toLowerCase());
    if (allowance === undefined || allowance === 0n || facts === undefined) return [];
    return [
      {
        tokenAddress: facts.address,
        symbol: facts.symbol,
        spender: grant.spender,
        allowance: String(allowance),
        allowanceFormatted: facts.decimals === null ? null : formatUnits(allowance, facts.decimals),
        isUnlimited: isUnlimited(allowance, facts),
        blockNumber: Number(grant.atBlock),
        revokeTransaction: unsignedApproval(head, grant, 0n, undefined),
      },
    ];
  });

  const notes = [
    searched.fromBlock === 0n
      ? 'The whole chain was searched.'
      : `Only approvals given since block ${searched.fromBlock} (${searched.toBlock - searched.fromBlock + 1n} blocks) are found: public nodes do not search further. ` +
        'Older ones may stand: ask for token and spender to read any single allowance.',
    'The gas of each revokeTransaction is null: it was not tried.',
  ];
  if (searched.isCut) notes.push('The node refused wide searches, so the window is smaller than usual.');
  if (silent > 0) notes.push(`${silent} contract(s) that sent an Approval do not answer for an allowance.`);
  if (pairs.size > newest.length) notes.push(`Only the newest ${MOST_APPROVALS} were looked at.`);
  return answer(
    {
      action: 'list' as const,
      chain: chain.name,
      ownerAddress: owner,
      tokenAddress: token ?? null,
      spenderAddress: spender ?? null,
      ...OF_NO_SINGLE_ONE,
      approvals,
      searchedFromBlock: Number(searched.fromBlock),
      blockNumber: Number(blockNumber),
    },
    {
      method:
        'Approval events of the owner over a bounded window of blocks, and for each token and spender in them the allowance that stands ' +
        'at the newest block; those that are 0 now are left out.',
      sources: [source],
      notes,
    },
  );
}

/** @throws noAnswer where the amount cannot be one of this token */
function amountOf(
  {
    amount: written = 'unlimited',
    amountRaw: raw,
  }: { amount?: string | undefined; amountRaw?: string | undefined },
  decimals: number | null,
): bigint {
  if (raw !== undefined) return atMost(BigInt(raw), 'amountRaw');
  if (/^[a-z]/i.test(written)) return MAX_UINT256;
  const [, fraction] = written.split('.');
  if (fraction !== undefined && decimals === null) {
    throw noAnswer(
      'NO_DECIMALS',
      'The token does not say its decimals: give amountRaw, in its smallest unit.',
      'amount',
    );
  }
  if (fraction !== undefined && fraction.replace(/0+$/, '').length > (decimals ?? 0)) {
    throw noAnswer('TOO_PRECISE', `The token has ${decimals} decimals, ${written} has more.`, 'amount');
  }
  return atMost(parseUnits(written, decimals ?? 0), 'amount');
}

function atMost(units: bigint, field: string): bigint {
  if (units > MAX_UINT256) throw noAnswer('TOO_MUCH', 'The amount is more than 2^256 - 1 units.', field);
  return units;
}

function shownAmount(units: bigint, decimals: number | null): string | null {
  if (units === MAX_UINT256) return 'unlimited';
  return decimals === null ? null : formatUnits(units, decimals);
}

/** More than the wallet can ever hold. */
function isUnlimited(allowance: bigint, { totalSupply }: TokenFacts): boolean {
  return allowance >= MAX_UINT96 && (totalSupply === null || allowance >= totalSupply);
}

function approve(spender: Address, amount: bigint) {
  return encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [spender, amount] });
}

function unsignedApproval(
  { chain }: ChainHead,
  { owner, token, spender }: Grant,
  amount: bigint,
  trial: Trial | undefined,
): Unsigned {
  return {
    from: owner,
    to: token,
    data: approve(spender, amount),
    value: '0x0',
    chainId: chain.chainId,
    gas: trial?.success === true ? numberToHex(gasLimit(trial.gas)) : null,
  };
}
