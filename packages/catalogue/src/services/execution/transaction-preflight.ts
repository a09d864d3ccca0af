import { answer } from '@farebox/core/words/answer';
import { invalidInput, noAnswer } from '@farebox/core/words/failure';
import { type Address, getAddress, type Hex, parseTransaction, zeroAddress } from 'viem';
import type { z } from 'zod';
import type { Act } from '../../preflight/act.ts';
import { type Finding, VERDICTS } from '../../preflight/finding.ts';
import { readSolanaTransaction, type SolanaTransaction } from '../../preflight/solana-transaction.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import type { Lists } from '../listed-parties.ts';
import {
  type EvmTransaction,
  type Preflight,
  preflightTransaction,
  preflightTypedData,
} from '../shared/preflight/evm-preflight.ts';
import { preflightInput, preflightOutput } from '../shared/preflight/preflight-form.ts';
import { preflightSolana } from '../shared/preflight/solana-preflight.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';

const CALLS_SHOWN = 50;
const LIST_SHOWN = 100;
const UNLIMITED = 2n ** 96n - 1n;
const MOST_U64 = 2n ** 64n - 1n;
const DISCLAIMER =
  'A program read and simulated it at one block. The state can change until it is mined, a contract can tell a simulation from the chain, and what is not listed was not looked for. This is information, not advice.';

type Input = z.output<typeof preflightInput>;

export default defineService({
  path: 'transaction-preflight',
  name: 'Transaction Preflight',
  tag: 'Execution',
  priceUsd: '0.15',
  summary:
    'What an unsigned transaction or typed data would do before you sign it: simulated balance changes, approvals, who takes part, drainer patterns, one verdict.',
  keywords:
    'preflight simulate simulation check before signing sign unsigned transaction typed data eip712 permit permit2 seaport drainer drain phishing scam approval setApprovalForAll safe to sign what does this signature do decode calldata wallet guard eip7702 delegation blind signing',
  input: preflightInput,
  output: preflightOutput,
  example: {
    chain: 'base',
    from: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    transaction: {
      to: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      value: '0',
      data: '0x095ea7b300000000000000000000000070997970c51812dc3a010c7d01b50e0d17dc79c8ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    },
  },
  aliases: {
    network: 'chain',
    chainId: 'chain',
    fromAddress: 'from',
    signer: 'from',
    walletAddress: 'from',
    tx: 'transaction',
    unsignedTransaction: 'transaction',
    unsignedSerialized: 'transaction',
    typed_data: 'typedData',
    eip712: 'typedData',
    message: 'typedData',
  },
  needs: [[...EVM_CHAIN_NAMES, 'solana']],
  uses: ['sourcify'],
  mayUse: ['lists'],
  timeoutMs: 25_000,
  async run(input, { upstreams, lists, nowMs }) {
    if (input.chain === 'solana') return onSolana(input, upstreams.solana, lists);
    const head = await namedChain(input.chain, upstreams);
    const signer = getAddress(input.from ?? zeroAddress);
    const registers = { sourcify: upstreams.sourcify, lists };
    const { typedData } = input;
    if (typedData !== undefined) {
      const made = await preflightTypedData(head, signer, typedData, registers, nowMs()).catch(
        (error: unknown) => {
          if (!(error instanceof TypeError)) throw error;
          throw noAnswer('NO_TYPED_DATA', 'It cannot be signed: it does not fit its own types.', 'typedData');
        },
      );
      const { form, digest } = made.signature;
      return told(made, {
        chain: head.chain.name,
        kind: 'evm-typed-data' as const,
        signer,
        typedData: { form, primaryType: typedData.primaryType, digest },
        atHeight: Number(head.blockNumber),
      });
    }
    const transaction = evmTransactionOf(input, signer, head.chain.chainId);
    const made = await preflightTransaction(head, transaction, registers, nowMs());
    return told(made, {
      chain: head.chain.name,
      kind: 'evm-transaction' as const,
      signer,
      typedData: null,
      atHeight: Number(head.blockNumber),
    });
  },
});

/** @throws invalidInput that names the field */
function evmTransactionOf({ transaction }: Input, from: Address, chainId: number): EvmTransaction {
  if (typeof transaction === 'string') return serialized(transaction, from, chainId);
  if (transaction === undefined) throw invalidInput('transaction', 'is required');
  const { data, input, to } = transaction;
  if (data !== undefined && input !== undefined && data !== input)
    throw invalidInput('transaction.input', 'must not differ from data');
  if (transaction.from !== undefined && transaction.from.toLowerCase() !== from.toLowerCase())
    throw invalidInput('transaction.from', 'must be the same as from');
  checkChain(transaction.chainId === undefined ? chainId : Number(BigInt(transaction.chainId)), chainId);
  return {
    from,
    to: to == null ? null : getAddress(to.toLowerCase()),
    value: BigInt(transaction.value),
    data: hex(data ?? input ?? '0x'),
    authorizations: transaction.authorizationList.map((each) => ({
      chainId: BigInt(each.chainId),
      delegate: getAddress(each.address.toLowerCase()),
    })),
  };
}

function checkChain(given: number, chainId: number) {
  if (given !== chainId)
    throw invalidInput('transaction.chainId', `is ${given}, and the chain that was named has ${chainId}`);
}

function serialized(text: string, from: Address, chainId: number): EvmTransaction {
  const read = parsed(text);
  checkChain(read.chainId ?? chainId, chainId);
  return {
    from,
    to: read.to ?? null,
    value: read.value ?? 0n,
    data: read.data ?? '0x',
    authorizations: (read.authorizationList ?? []).map((each) => ({
      chainId: BigInt(each.chainId),
      delegate: getAddress(each.address),
    })),
  };
}

function parsed(text: string) {
  try {
    return parseTransaction(hex(text));
  } catch {
    throw invalidInput('transaction', 'is no serialized transaction (EIP-2718)');
  }
}

const hex = (text: string): Hex => `0x${text.slice(2).toLowerCase()}`;

async function onSolana({ transaction, from }: Input, solana: Upstreams['solana'], lists: Lists | undefined) {
  const read = solanaTransactionOf(transaction);
  const signer = from ?? read.feePayer;
  const made = await preflightSolana(solana, read, signer, lists);
  const { trial } = made;
  return answer(
    {
      chain: 'solana' as const,
      kind: 'solana-transaction' as const,
      signer,
      typedData: null,
      atHeight: made.slot,
      verdict: made.verdict,
      findings: worstFirst(made.findings),
      approvals: made.approvals.slice(0, LIST_SHOWN).map(({ at, owner, token, spender, amount, by }) => ({
        owner,
        token,
        spender,
        amountRaw: amount === null ? null : String(amount),
        isUnlimited: amount === null || amount >= MOST_U64,
        expiresAtUnixS: null,
        by,
        at,
      })),
      transfers: [],
      orders: [],
      balanceChanges: made.changes === null ? null : made.changes.slice(0, LIST_SHOWN),
      simulation:
        trial === null
          ? null
          : {
              method: 'simulateTransaction' as const,
              success: trial.error === null,
              revertReason: made.reason,
              gasUsed: trial.computeUnits === null ? null : String(trial.computeUnits),
            },
      calls: made.calls.slice(0, CALLS_SHOWN).map(({ at, to, called }) => ({
        at,
        to,
        valueWei: '0',
        selector: null,
        function: called,
      })),
      counterparties: made.parties.slice(0, LIST_SHOWN).map(({ address, isSanctioned, isMixer }) => ({
        address,
        account: null,
        known: null,
        sourceIsPublished: null,
        sanctioned: isSanctioned,
        mixer: isMixer,
      })),
      coverage: made.checks,
      disclaimer: DISCLAIMER,
    },
    { method: SOLANA_METHOD, sources: made.sources },
  );
}

/** @throws invalidInput that names the field */
function solanaTransactionOf(transaction: Input['transaction']): SolanaTransaction {
  if (typeof transaction !== 'string') throw invalidInput('transaction', 'must be base64');
  try {
    return readSolanaTransaction(transaction);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw invalidInput('transaction', error.message);
  }
}

interface About {
  chain: z.input<typeof preflightOutput>['chain'];
  kind: z.input<typeof preflightOutput>['kind'];
  signer: string;
  typedData: z.input<typeof preflightOutput>['typedData'];
  atHeight: number;
}

const SOLANA_METHOD =
  'Instructions of the system, token, stake and loader programs were read by their layouts, with accounts from lookup tables; simulateTransaction ran it, and accounts that it may write to were compared before and after. Delegates, owners and authorities that change are found by that, whatever the instructions say. The verdict is the worst of the findings.';
const METHOD =
  'Call data and typed data were read by the published signatures of their functions and types, calls within calls too; the call was run on the newest state with balances read before and after; every address was held against lists, an oracle and a register of sources. The verdict is the worst of the findings.';

function told(made: Preflight, about: About) {
  const { simulation } = made;
  return answer(
    {
      ...about,
      verdict: made.verdict,
      findings: worstFirst(made.findings),
      ...listed(made.acts),
      balanceChanges: made.changes === null ? null : made.changes.slice(0, LIST_SHOWN),
      simulation:
        simulation === null
          ? null
          : {
              method: simulation.method,
              success: simulation.success,
              revertReason: simulation.revertReason,
              gasUsed: simulation.gasUsed === null ? null : String(simulation.gasUsed),
            },
      calls: made.calls.slice(0, CALLS_SHOWN).map(({ at, to, value, selector, called }) => ({
        at,
        to,
        valueWei: String(value),
        selector,
        function: called,
      })),
      counterparties: made.facts.map(({ address, account, known, isVerified, isSanctioned, isMixer }) => ({
        address,
        account,
        known: known?.name ?? null,
        sourceIsPublished: isVerified,
        sanctioned: isSanctioned,
        mixer: isMixer,
      })),
      coverage: made.checks,
      disclaimer: DISCLAIMER,
    },
    {
      method: METHOD,
      sources: made.sources,
      notes: [
        ...(made.calls.length > CALLS_SHOWN
          ? [`Of ${made.calls.length} calls ${CALLS_SHOWN} are shown.`]
          : []),
        ...(made.findings.length > LIST_SHOWN
          ? [`Of ${made.findings.length} findings ${LIST_SHOWN} are shown.`]
          : []),
      ],
    },
  );
}

function worstFirst(findings: readonly Finding[]): Finding[] {
  const rank = ({ severity }: Finding) => (severity === 'info' ? 0 : VERDICTS.indexOf(severity));
  return [...findings].sort((a, b) => rank(b) - rank(a)).slice(0, LIST_SHOWN);
}

function listed(acts: readonly Act[]) {
  const goods = ({ token, amount, isNft }: { token: string | null; amount: bigint; isNft: boolean }) => ({
    token,
    amountRaw: String(amount),
    isNft,
  });
  return {
    approvals: acts
      .flatMap((act) => {
        if (act.kind === 'operator') {
          const { owner, collection: token, operator: spender, by, at } = act;
          return [
            { owner, token, spender, amountRaw: null, isUnlimited: true, expiresAtUnixS: null, by, at },
          ];
        }
        if (act.kind !== 'approval') return [];
        const { owner, token, spender, amount, expiresAtS, by, at } = act;
        return [
          {
            owner,
            token,
            spender,
            amountRaw: amount === null ? null : String(amount),
            isUnlimited: amount === null || amount >= UNLIMITED,
            expiresAtUnixS: expiresAtS === null ? null : String(expiresAtS),
            by,
            at,
          },
        ];
      })
      .slice(0, LIST_SHOWN),
    transfers: acts
      .flatMap((act) => {
        if (act.kind !== 'transfer') return [];
        const { token, from, to, amount, by, at } = act;
        return [{ token, from, to, amountRaw: String(amount), by, at }];
      })
      .slice(0, LIST_SHOWN),
    orders: acts
      .flatMap((act) => {
        if (act.kind !== 'order') return [];
        const expiresAtUnixS = act.expiresAtS === null ? null : String(act.expiresAtS);
        return [{ gives: act.gives.map(goods), gets: act.gets.map(goods), expiresAtUnixS }];
      })
      .slice(0, LIST_SHOWN),
  };
}
