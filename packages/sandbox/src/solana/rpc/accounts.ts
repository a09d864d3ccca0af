/** Methods that read accounts. */
import { type EncodedAccount, getBase58Encoder } from '@solana/kit';
import { accountFormatOf, accountView } from '../account-encoding.ts';
import {
  addressAt,
  type Config,
  commitmentOf,
  configAt,
  flagOf,
  integerOf,
  invalid,
  listAt,
  toAddress,
} from '../params.ts';
import { checkMinContextSlot, type Methods, type SandboxNode, slotAt, withContext } from './method.ts';

const MAX_MULTIPLE_ACCOUNTS = 100;
const MAX_PROGRAM_ACCOUNTS = 1_000;
const MAX_FILTERS = 4;
const MAX_FILTER_BYTES = 128;

export const ACCOUNT_METHODS: Methods = {
  getAccountInfo(node, params) {
    const { slot, config } = read(node, params, 1);
    const account = node.bank.account(addressAt(params, 0));
    return withContext(slot, accountView(node.bank, account, accountFormatOf(config, 'base58')));
  },

  getMultipleAccounts(node, params) {
    const { slot, config } = read(node, params, 1);
    const format = accountFormatOf(config, 'base64');
    const addresses = listAt(params, 0, MAX_MULTIPLE_ACCOUNTS).map(toAddress);
    return withContext(
      slot,
      addresses.map((address) => accountView(node.bank, node.bank.account(address), format)),
    );
  },

  getBalance(node, params) {
    const { slot } = read(node, params, 1);
    return withContext(slot, node.bank.account(addressAt(params, 0))?.lamports ?? 0);
  },

  getProgramAccounts(node, params) {
    const { slot, config } = read(node, params, 1);
    const format = accountFormatOf(config, 'base58');
    const passes = filtersOf(config);
    const found = node.bank.programAccounts(addressAt(params, 0)).filter(passes);
    if (found.length > MAX_PROGRAM_ACCOUNTS)
      throw invalid(`The sandbox lists ${MAX_PROGRAM_ACCOUNTS} accounts of a program at most; use filters.`);
    const views = found.map((account) => ({
      pubkey: account.address,
      account: accountView(node.bank, account, format),
    }));
    return flagOf(config, 'withContext') ? withContext(slot, views) : views;
  },
};

function read({ bank }: SandboxNode, params: readonly unknown[], configIndex: number) {
  const config = configAt(params, configIndex);
  const slot = slotAt(bank, commitmentOf(config));
  checkMinContextSlot(config, slot);
  return { slot, config };
}

/** Reads `filters`: `{dataSize}` and `{memcmp: {offset, bytes, encoding}}`, all of which an account must pass. */
function filtersOf({ filters }: Config): (account: EncodedAccount) => boolean {
  if (filters === undefined || filters === null) return () => true;
  const tests = listAt([filters], 0, MAX_FILTERS).map(filterOf);
  return (account) => tests.every((test) => test(account));
}

function filterOf(filter: unknown): (account: EncodedAccount) => boolean {
  const config = configAt([filter], 0);
  if (config.dataSize !== undefined) {
    const bytes = integerOf(config, 'dataSize', 0, Number.MAX_SAFE_INTEGER);
    return ({ data }) => data.length === bytes;
  }
  const memcmp = configAt([config.memcmp], 0);
  const offset = integerOf(memcmp, 'offset', 0, Number.MAX_SAFE_INTEGER);
  const wanted = memcmpBytes(memcmp);
  return ({ data }) => wanted.every((byte, index) => data[offset + index] === byte);
}

function memcmpBytes({ bytes, encoding }: Config): Uint8Array {
  if (typeof bytes !== 'string' || bytes.length > 2 * MAX_FILTER_BYTES)
    throw invalid('Invalid param: encoded binary data of a filter must be a short string');
  try {
    return encoding === 'base64'
      ? new Uint8Array(Buffer.from(bytes, 'base64'))
      : new Uint8Array(getBase58Encoder().encode(bytes));
  } catch {
    throw invalid('Invalid param: bs58 encoded binary data of a filter is invalid');
  }
}
