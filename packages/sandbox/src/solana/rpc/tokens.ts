/** Methods that read tokens. */
import type { Address, EncodedAccount } from '@solana/kit';
import { accountFormatOf, accountView } from '../account-encoding.ts';
import type { Bank } from '../bank.ts';
import { addressAt, commitmentOf, configAt, invalid, toAddress } from '../params.ts';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from '../programs.ts';
import { isTokenProgram, readMint, readToken, uiTokenAmount } from '../token-state.ts';
import { checkMinContextSlot, type Methods, slotAt, withContext } from './method.ts';

const MAX_LISTED = 1_000;
const MAX_LARGEST = 20;

export const TOKEN_METHODS: Methods = {
  getTokenAccountBalance({ bank }, params) {
    const account = bank.account(addressAt(params, 0));
    if (account === null) throw invalid('Invalid param: could not find account');
    const token = readToken(account);
    if (token === null) throw invalid('Invalid param: not a Token account');
    const { decimals } = mintAt(bank, token.mint);
    return withContext(slotOf(bank, params, 1), uiTokenAmount(token.amount, decimals));
  },

  getTokenSupply({ bank }, params) {
    const { supply, decimals } = mintAt(bank, addressAt(params, 0));
    return withContext(slotOf(bank, params, 1), uiTokenAmount(supply, decimals));
  },

  getTokenAccountsByOwner({ bank }, params) {
    const owner = addressAt(params, 0);
    const slot = slotOf(bank, params, 2);
    const format = accountFormatOf(configAt(params, 2), 'base58');
    const held = heldUnder(bank, params[1]).filter((one) => readToken(one)?.owner === owner);
    if (held.length > MAX_LISTED)
      throw invalid(`The sandbox lists ${MAX_LISTED} accounts of an owner at most.`);
    return withContext(
      slot,
      held.map((one) => ({ pubkey: one.address, account: accountView(bank, one, format) })),
    );
  },

  getTokenLargestAccounts({ bank }, params) {
    const mint = addressAt(params, 0);
    const { decimals } = mintAt(bank, mint);
    const held = heldUnder(bank, { mint })
      .map((one) => ({ address: one.address, amount: readToken(one)?.amount ?? 0n }))
      .sort((one, other) => (one.amount < other.amount ? 1 : -1))
      .slice(0, MAX_LARGEST);
    return withContext(
      slotOf(bank, params, 1),
      held.map(({ address, amount }) => ({ address, ...uiTokenAmount(amount, decimals) })),
    );
  },
};

/** The token accounts that `{mint}` or `{programId}` names. */
function heldUnder(bank: Bank, filter: unknown): readonly EncodedAccount[] {
  const { mint, programId } = configAt([filter], 0);
  if (mint !== undefined) {
    const wanted = toAddress(mint);
    const mintAccount = bank.account(wanted);
    if (mintAccount === null || readMint(mintAccount) === null)
      throw invalid('Invalid param: could not find mint');
    return bank.programAccounts(mintAccount.programAddress).filter((one) => readToken(one)?.mint === wanted);
  }
  const program = toAddress(programId);
  if (!isTokenProgram(program))
    throw invalid(
      `Invalid param: unrecognized Token program id, expected ${TOKEN_PROGRAM} or ${TOKEN_2022_PROGRAM}`,
    );
  return bank.programAccounts(program).filter((one) => readToken(one) !== null);
}

function mintAt(bank: Bank, address: Address) {
  const account = bank.account(address);
  if (account === null) throw invalid('Invalid param: could not find mint');
  const mint = readMint(account);
  if (mint === null) throw invalid('Invalid param: not a Token mint');
  return mint;
}

function slotOf(bank: Bank, params: readonly unknown[], configIndex: number): number {
  const config = configAt(params, configIndex);
  const slot = slotAt(bank, commitmentOf(config));
  checkMinContextSlot(config, slot);
  return slot;
}
