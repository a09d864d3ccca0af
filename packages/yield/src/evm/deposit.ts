/** Transactions that deposit: an approval and a deposit, or a deposit with a permit. */

import { Problem } from '@farebox/core/http/problem';
import { type Address, encodeFunctionData, type Hex, isHex, numberToHex, parseEventLogs } from 'viem';
import { PERMIT_DEPOSIT_ABI, USDC_ABI, VAULT_ABI } from '../contracts/abi.ts';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import { timeText, usdcText } from '../figures.ts';
import type { Leaving, Mode } from './asked.ts';
import { CHAIN_ID, type Fixed, PROTOCOL_TITLES } from './fixed.ts';
import { chainUnavailable, fromChain, type Node, quantityFrom } from './node.ts';
import type { Failure, Log } from './simulate.ts';
import { type Block, blockCallsOf, blockIn, sureOf } from './snapshot.ts';
import { type Measured, returnedBy, type Step, type Trial, tryOut } from './steps.ts';

/** How long a permit holds, from now on. */
const PERMIT_SECONDS = 1_800n;
/** The most that the price may move against the depositor while a permit waits: a thousandth. */
const SLIPPAGE_PER_MILLE = 1n;
/** A signature is two words and a byte, which is sent as a word: the last three arguments. */
const SIGNATURE_BYTES = 96;
/** An account that lets a contract act for it, and is a wallet still (EIP-7702). Its permits are what that contract takes. */
const DELEGATED = '0xef0100';

export interface DepositAsked {
  wallet: Address;
  /** USDC units. */
  amount: bigint;
  mode: Mode;
  nowMs: number;
}

export interface Warning {
  code: string;
  message: string;
  /** Whether going on all the same may cost money, or cannot work: a program stops there, and a page asks. */
  costs: boolean;
}

/** The wallet's balances and allowances at one block. */
interface Standing {
  block: Block;
  usdc: bigint;
  allowance: bigint;
  nonce: bigint;
  shares: bigint;
  entryBps: number;
  complete: boolean;
  seeded: boolean;
  isContract: boolean;
  /** A wallet for which a contract acts. */
  isDelegated: boolean;
  wei: bigint;
  gasPriceWei: bigint;
}

/**
 * Builds the transactions that a wallet signs to deposit.
 *
 * @throws Problem 409 when it would fail for another reason than what the wallet lacks; 503 while the chain is silent, or
 *   when there is no contract that takes permits
 */
export async function depositTransactions(node: Node, fixed: Fixed, asked: DepositAsked) {
  const { wallet, amount, mode } = asked;
  const spender = mode === 'permit' ? permitDepositOf(fixed) : fixed.vault;
  const standing = await standingOf(node, fixed, { wallet, amount, spender });
  if (mode === 'permit' && (standing.isContract || standing.isDelegated))
    throw cannotPermit(wallet, standing);
  const permit = mode === 'permit' ? permitOf(fixed, asked, standing) : null;
  const steps = permit === null ? approvalAndDeposit(fixed, asked, standing) : [permit.step];
  const lacking = amount > standing.usdc ? amount - standing.usdc : 0n;
  const trial = await tryOut(node, fixed, wallet, steps, standing.block, {
    usdc: lacking,
    signature: permit !== null,
  });
  if (!trial.ok) throw wouldFail(trial, steps, standing);
  const placed = placedBy(fixed, trial.logs);
  const lent = PROTOCOLS.reduce((sum, name) => sum + placed.taken[name], 0n);
  const idle = amount > lent ? amount - lent : 0n;
  const warnings = [...warningsFor(asked, standing, trial.steps), ...idleWarning(amount, idle, placed)];
  const [minted] = returnedBy(trial, [{ type: 'uint256' }]);
  const fee = entryFee(amount, standing.entryBps);
  return {
    success: true,
    amountUsdc: usdcText(amount),
    amountRaw: String(amount),
    recipient: wallet,
    chainId: CHAIN_ID,
    mode,
    transactions: trial.steps.length,
    steps: trial.steps.map((step, index) => ({
      ...stepView(step, index),
      ...(permit === null ? {} : { data: null, permit: permit.told }),
    })),
    expected: {
      shares: String(minted),
      shareToken: fixed.shareToken,
      shareDecimals: fixed.shareDecimals,
      minShares: String(leastShares(standing.shares)),
      goesTo: Object.fromEntries(PROTOCOLS.map((name) => [name, usdcText(placed.taken[name])])),
      liesIdle: usdcText(idle),
    },
    fees: {
      entryFeePct: standing.entryBps / 100,
      entryFee: usdcText(fee),
      entryFeeRaw: String(fee),
      netDeposited: usdcText(amount - fee),
      netDepositedRaw: String(amount - fee),
      gas: gasView(trial.steps, standing.gasPriceWei),
    },
    warnings,
    simulatedAt: blockView(standing.block),
  };
}

/** Rounded up to a unit, as the vault does. */
function entryFee(amount: bigint, bps: number): bigint {
  return (amount * BigInt(bps) + 9_999n) / 10_000n;
}

function permitDepositOf({ permitDeposit }: Fixed): Address {
  if (permitDeposit !== null) return permitDeposit;
  const message =
    'This server has no contract that deposits with a permit. Leave mode out: two transactions.';
  throw new Problem(409, 'NO_PERMIT_DEPOSIT', message, { details: { success: false } });
}

function cannotPermit(wallet: Address, { isDelegated }: Standing): Problem {
  // USDC asks the code of whoever has some, and what that code takes for a signature cannot be tried without one.
  const because = isDelegated
    ? 'lets a contract act for it (EIP-7702), which USDC asks whether a permit is signed'
    : 'is a contract: it signs as ERC-1271 says';
  const message = `${wallet} ${because}, and a permit here takes the signature of a key. Use mode=standard.`;
  return new Problem(409, 'CONTRACT_CANNOT_PERMIT', message, { details: { success: false } });
}

async function standingOf(
  node: Node,
  { vault, usdc }: Fixed,
  { wallet, amount, spender }: { wallet: Address; amount: bigint; spender: Address },
): Promise<Standing> {
  const { chain } = node;
  const token = { address: usdc, abi: USDC_ABI } as const;
  const its = { address: vault, abi: VAULT_ABI } as const;
  const [answers, code, wei, gasPriceWei] = await Promise.all([
    chain.multicall({
      contracts: [
        ...blockCallsOf(chain),
        { ...token, functionName: 'balanceOf', args: [wallet] },
        { ...token, functionName: 'allowance', args: [wallet, spender] },
        { ...token, functionName: 'nonces', args: [wallet] },
        { ...its, functionName: 'previewDeposit', args: [amount] },
        { ...its, functionName: 'fees' },
        { ...its, functionName: 'holdings' },
        { ...its, functionName: 'seeded' },
      ],
      batchSize: 0,
    }),
    codeOf(node, wallet),
    quantityFrom(node, 'eth_getBalance', [wallet, 'latest']),
    quantityFrom(node, 'eth_gasPrice'),
  ]);
  const [number, timestamp, chainId, balance, allowance, nonce, shares, fees, holdings, seeded] = answers;
  const [, , , complete] = sureOf(holdings);
  return {
    block: blockIn(node, [number, timestamp, chainId]),
    usdc: sureOf(balance),
    allowance: sureOf(allowance),
    nonce: sureOf(nonce),
    shares: sureOf(shares),
    entryBps: sureOf(fees).entryBps,
    complete,
    seeded: sureOf(seeded),
    isContract: code !== '0x' && !code.startsWith(DELEGATED),
    isDelegated: code.startsWith(DELEGATED),
    wei,
    gasPriceWei,
  };
}

/** `0x`: it has none. @throws Problem 503 */
async function codeOf({ rpc }: Node, address: Address): Promise<Hex> {
  const code = await fromChain(rpc.call('eth_getCode', [address, 'latest']));
  if (typeof code === 'string' && isHex(code)) return code;
  throw chainUnavailable(new Error('the node answers no code'));
}

/** Fewer shares than these are refused by the transaction itself. */
function leastShares(shares: bigint): bigint {
  return shares - (shares * SLIPPAGE_PER_MILLE) / 1_000n;
}

/** Where the vault puts what comes, by what it says in the simulation. */
function placedBy({ vault }: Fixed, logs: readonly Log[]) {
  const taken: Record<ProtocolName, bigint> = { aave: 0n, compound: 0n, morpho: 0n };
  const refused: ProtocolName[] = [];
  const its = logs.filter(({ address }) => address.toLowerCase() === vault.toLowerCase());
  const events = parseEventLogs({ abi: VAULT_ABI, eventName: ['Supplied', 'NotTaken'], logs: its as never });
  for (const { eventName, args } of events) {
    const name = PROTOCOLS[args.protocol];
    if (name === undefined) continue;
    if (eventName === 'Supplied') taken[name] += args.assets;
    else refused.push(name);
  }
  return { taken, refused };
}

/** Less than this lies idle for the rounding of protocols alone, and is nobody's loss. */
const LEAST_IDLE = 100n;

function idleWarning(amount: bigint, idle: bigint, { refused }: ReturnType<typeof placedBy>): Warning[] {
  if (idle < LEAST_IDLE) return [];
  const because =
    refused.length === 0
      ? 'Every protocol that the vault uses has all that it may hold of it'
      : `${refused.map((name) => PROTOCOL_TITLES[name]).join(' and ')} would not take it now`;
  const part = idle >= amount ? 'All of it' : `${usdcText(idle)} USDC of it`;
  return [
    {
      code: 'WILL_LIE_IDLE',
      message: `${part} would lie idle in the vault and earn nothing for now, while the entry fee is taken at once. ${because}. It can be taken out again at any time.`,
      costs: true,
    },
  ];
}

function approvalAndDeposit(
  { vault, usdc }: Fixed,
  { wallet, amount }: DepositAsked,
  { shares }: Standing,
): Step[] {
  return [
    {
      action: 'approve',
      to: usdc,
      data: encodeFunctionData({ abi: USDC_ABI, functionName: 'approve', args: [vault, amount] }),
      note: `Lets the vault take ${usdcText(amount)} USDC, and no more. Wait until it is mined.`,
    },
    {
      action: 'deposit',
      to: vault,
      data: encodeFunctionData({
        abi: VAULT_ABI,
        functionName: 'deposit',
        args: [amount, wallet, leastShares(shares)],
      }),
      note: `Deposits them; the shares go to the recipient. It is reverted if they are fewer than ${leastShares(shares)} units.`,
    },
  ];
}

/** The payload to sign, and the transaction but for the signature. */
function permitOf(fixed: Fixed, { wallet, amount, nowMs }: DepositAsked, { block, nonce, shares }: Standing) {
  const spender = permitDepositOf(fixed);
  // A node that is behind, or a chain that stood still, has an old block, and the next one is of now.
  const deadline = BigInt(Math.floor(Math.max(block.timestampMs, nowMs) / 1_000)) + PERMIT_SECONDS;
  const minShares = leastShares(shares);
  const data = encodeFunctionData({
    abi: PERMIT_DEPOSIT_ABI,
    functionName: 'depositWithPermit',
    args: [
      amount,
      wallet,
      minShares,
      deadline,
      27,
      numberToHex(1n, { size: 32 }),
      numberToHex(1n, { size: 32 }),
    ],
  });
  const dataWithoutSignature = data.slice(0, data.length - 2 * SIGNATURE_BYTES) as Hex;
  return {
    step: {
      action: 'depositWithPermit',
      to: spender,
      data,
      note: 'Sign permit.typedData (eth_signTypedData_v4), put the signature in as permit.putSignatureIn says, and send it.',
    },
    told: {
      typedData: {
        types: {
          EIP712Domain: [
            { name: 'name', type: 'string' },
            { name: 'version', type: 'string' },
            { name: 'chainId', type: 'uint256' },
            { name: 'verifyingContract', type: 'address' },
          ],
          Permit: [
            { name: 'owner', type: 'address' },
            { name: 'spender', type: 'address' },
            { name: 'value', type: 'uint256' },
            { name: 'nonce', type: 'uint256' },
            { name: 'deadline', type: 'uint256' },
          ],
        },
        primaryType: 'Permit',
        domain: { ...fixed.usdcDomain, chainId: CHAIN_ID, verifyingContract: fixed.usdc },
        message: {
          owner: wallet,
          spender,
          value: String(amount),
          nonce: String(nonce),
          deadline: String(deadline),
        },
      },
      dataWithoutSignature,
      putSignatureIn:
        'The signature is 65 bytes: r (32), s (32), v (1; 0 or 1 counts as 27 or 28). data = dataWithoutSignature, then v as a word of 32 bytes, then r, then s.',
      minShares: String(minShares),
      expiresAt: timeText(Number(deadline) * 1_000),
    },
  };
}

function warningsFor(
  { wallet, amount, mode }: DepositAsked,
  { usdc, allowance, isContract, wei, gasPriceWei, block }: Standing,
  steps: readonly Measured[],
): Warning[] {
  const warnings: Warning[] = [];
  const add = (code: string, message: string, costs = true) => void warnings.push({ code, message, costs });
  if (usdc < amount)
    add(
      'INSUFFICIENT_USDC',
      `${wallet} holds ${usdcText(usdc)} USDC at block ${block.number}, which is ${usdcText(amount - usdc)} too little. Nothing can be deposited before it holds more; the simulation assumed that it does.`,
    );
  const needed = steps.reduce((sum, { gasLimit }) => sum + gasLimit, 0n) * gasPriceWei;
  if (wei < needed)
    add(
      'INSUFFICIENT_ETH',
      `${wallet} holds ${wei} wei, and the gas may cost ${needed} wei at the price of now.`,
    );
  if (mode === 'standard' && allowance >= amount)
    add(
      'ALREADY_APPROVED',
      `The vault may take ${usdcText(allowance)} USDC from ${wallet} already: step 1 can be left out. Sending it sets the allowance to ${usdcText(amount)}.`,
      false,
    );
  if (isContract)
    add(
      'RECIPIENT_IS_CONTRACT',
      `${wallet} is a contract. Make sure that it can hold shares and call redeem, or they can never be taken out.`,
    );
  return warnings;
}

/** A transaction as it is handed out. */
export function stepView({ action, to, data, gasLimit, gasUsed, note }: Measured, index: number) {
  return {
    step: index + 1,
    action,
    to,
    data,
    value: '0x0',
    chainId: CHAIN_ID,
    gas: numberToHex(gasLimit),
    gasUsed: String(gasUsed),
    note,
  };
}

export function gasView(steps: readonly Measured[], gasPriceWei: bigint) {
  const used = steps.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
  return {
    used: String(used),
    gasPriceWei: String(gasPriceWei),
    costWei: String(used * gasPriceWei),
    note: 'Measured in the simulation. Base charges for data on Ethereum beside it.',
  };
}

export function blockView({ number, timestampMs }: Block) {
  return { blockNumber: String(number), blockTime: timeText(timestampMs) };
}

/** Remedies for the failures that the contracts name. */
const REMEDIES: Readonly<Record<string, { code: string; message: string; instead?: readonly Leaving[] }>> = {
  ERC4626ExceededMaxDeposit: {
    code: 'DEPOSITS_CLOSED',
    message: 'Deposits are closed at the moment. Exits never are.',
  },
  ZeroShares: { code: 'AMOUNT_TOO_SMALL', message: 'So little buys no share. Deposit more.' },
  TooFewShares: { code: 'PRICE_MOVED', message: 'The price of a share moved. Ask again.' },
  TooFewAssets: { code: 'PRICE_MOVED', message: 'The price of a share moved. Ask again.' },
  TooManyShares: { code: 'PRICE_MOVED', message: 'The price of a share moved. Ask again.' },
  NotEnoughLiquidity: {
    code: 'NOT_ENOUGH_LIQUIDITY',
    message:
      'The protocols cannot pay out this much now. Withdraw what is available, or take your part of each position itself.',
    instead: ['available', 'in-kind'],
  },
  NotHandedOver: {
    code: 'NOT_HANDED_OVER',
    message:
      'A protocol does not hand over its part now. Wait, or withdraw what is available; in-kind-partly leaves that part to the other holders.',
    instead: ['available', 'in-kind-partly'],
  },
};

/** The 409 of a transaction that would fail. Nothing is handed out that is known to fail. */
export function wouldFail(
  { failure, failedStep }: Extract<Trial, { ok: false }>,
  steps: readonly Step[],
  { block, complete, seeded = true }: { block: Block; complete: boolean; seeded?: boolean },
  more: (instead: readonly Leaving[]) => Record<string, unknown> = () => ({}),
): Problem {
  const remedy = REMEDIES[failure.error ?? ''];
  const isClosed = failure.error === 'ERC4626ExceededMaxDeposit';
  const closed = !seeded
    ? 'The vault takes no deposit before its seed of 1 USDC is in: whoever calls its function seed() puts it in.'
    : 'A protocol that the vault has funds in cannot be read, so deposits are closed until it can. Exits never are.';
  const message =
    isClosed && !(complete && seeded)
      ? closed
      : (remedy?.message ?? `The transaction would fail: ${failure.message}.`);
  return new Problem(409, remedy?.code ?? 'WOULD_FAIL', message, {
    details: {
      success: false,
      failure: failureView(failure),
      failedAction: steps[failedStep]?.action ?? null,
      simulatedAt: blockView(block),
      ...more(remedy?.instead ?? []),
    },
  });
}

function failureView({ error, values, message }: Failure) {
  return { error, values, message };
}
