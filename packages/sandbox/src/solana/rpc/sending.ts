/** Methods that simulate or send transactions. */
import { accountFormatOf, accountView } from '../account-encoding.ts';
import type { Execution } from '../bank.ts';
import type { Struck } from '../faults.ts';
import { RpcError } from '../json-rpc.ts';
import { whileStopped } from '../lending/stop.ts';
import {
  addressAt,
  choiceOf,
  commitmentOf,
  configAt,
  flagOf,
  integerAt,
  invalid,
  listAt,
  textAt,
  toAddress,
} from '../params.ts';
import { BLOCKHASH_SLOTS } from '../slots.ts';
import { parsedInnerInstructions } from '../transaction-encoding.ts';
import { textOf } from '../transaction-error.ts';
import { readTransaction, type WireTransaction } from '../wire-transaction.ts';
import { checkMinContextSlot, type Methods, type SandboxNode, slotAt, withContext } from './method.ts';

const PREFLIGHT_FAILURE = -32002;
const SIGNATURE_VERIFICATION_FAILURE = -32003;
const MAX_SIMULATED_ACCOUNTS = 256;
const MAX_AIRDROP_LAMPORTS = 1_000 * 1_000_000_000;

/**
 * Sends a transaction. Like a node, returns the signature whether or not the transaction lands.
 *
 * @param becomes what happens to the transaction
 * @throws RpcError −32002 or −32003 if the simulation before the sending fails
 */
export function sendTransaction(
  { bank }: SandboxNode,
  params: readonly unknown[],
  becomes: Struck['sent'],
): string {
  const config = configAt(params, 1);
  const transaction = readWire(params);
  const { signature } = transaction;
  if (bank.history.bySignature(signature) !== undefined) return signature;
  if (!flagOf(config, 'skipPreflight')) {
    const tried = bank.simulate(transaction, { signatures: true, blockhash: true });
    if (tried.err === 'SignatureFailure') throw signatureFailure();
    if (tried.err !== null) throw preflightFailure(tried);
  }
  if (becomes === 'lands') bank.land(transaction);
  if (becomes === 'fails-landing') whileStopped(bank, () => bank.land(transaction));
  return signature;
}

export const SENDING_METHODS: Methods = {
  simulateTransaction(node, params) {
    const { bank } = node;
    const config = configAt(params, 1);
    const signatures = flagOf(config, 'sigVerify');
    const replaces = flagOf(config, 'replaceRecentBlockhash');
    if (signatures && replaces) throw invalid('sigVerify may not be used with replaceRecentBlockhash');
    const slot = slotAt(bank, commitmentOf(config));
    checkMinContextSlot(config, slot);
    const transaction = readWire(params);
    const wanted = wantedAccounts(node, config.accounts);
    const execution = bank.simulate(transaction, { signatures, blockhash: !replaces });
    if (signatures && execution.err === 'SignatureFailure') throw signatureFailure();
    return withContext(slot, {
      err: execution.err,
      logs: execution.logs,
      accounts: wanted(execution),
      unitsConsumed: execution.unitsConsumed,
      returnData: execution.returnData,
      innerInstructions: flagOf(config, 'innerInstructions')
        ? parsedInnerInstructions(execution.innerInstructions(), bank.keysOf(transaction)?.all ?? [])
        : null,
      replacementBlockhash: replaces
        ? {
            blockhash: bank.clock.blockhashOf(slot),
            lastValidBlockHeight: bank.clock.blockHeightOf(slot) + BLOCKHASH_SLOTS,
          }
        : null,
    });
  },

  requestAirdrop: ({ faucet }, params) => {
    const to = addressAt(params, 0);
    const lamports = integerAt(params, 1, MAX_AIRDROP_LAMPORTS);
    return faucet.give(to, { lamports: BigInt(lamports), usdcUnits: 0n });
  },
};

function readWire(params: readonly unknown[]): WireTransaction {
  const encoding = choiceOf(configAt(params, 1), 'encoding', ['base58', 'base64'], 'base58');
  return readTransaction(textAt(params, 0), encoding);
}

/** Reads which accounts a simulation is to show as the transaction would leave them. */
function wantedAccounts({ bank }: SandboxNode, accounts: unknown): (execution: Execution) => unknown {
  if (accounts === undefined || accounts === null) return () => null;
  const config = configAt([accounts], 0);
  const addresses = listAt([config.addresses], 0, MAX_SIMULATED_ACCOUNTS).map(toAddress);
  const format = accountFormatOf(config, 'base64');
  return ({ err, postAccounts }) => {
    if (err !== null) return addresses.map(() => null);
    const left = new Map(postAccounts().map((one) => [one.address, one]));
    return addresses.map((address) => accountView(bank, left.get(address) ?? bank.account(address), format));
  };
}

function signatureFailure(): RpcError {
  return new RpcError(SIGNATURE_VERIFICATION_FAILURE, 'Transaction signature verification failure');
}

function preflightFailure({ err, logs, unitsConsumed, returnData }: Execution): RpcError {
  const text = err === null ? '' : textOf(err);
  return new RpcError(PREFLIGHT_FAILURE, `Transaction simulation failed: ${text}`, {
    err,
    logs,
    accounts: null,
    unitsConsumed,
    returnData,
    innerInstructions: null,
    replacementBlockhash: null,
  });
}
