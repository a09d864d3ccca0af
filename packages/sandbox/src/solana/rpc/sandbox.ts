/** Methods that no real node has: they give money to wallets, let time pass, and order faults. */
import { readProgram } from '../lending/program.ts';
import { addressAt, configAt, integerAt, integerOf, invalid } from '../params.ts';
import type { Methods } from './method.ts';

const MAX_LAMPORTS = 10_000 * 1_000_000_000;
const MAX_USDC_UNITS = 1_000_000_000 * 1_000_000;
/** About five years: a program that computes interest by slot must be able to follow such a leap. */
const MAX_ADVANCED_SLOTS = 400_000_000;
const MAX_PASSED_SECONDS = 3_650 * 86_400;

export const SANDBOX_METHODS: Methods = {
  /** `[address, {lamports, usdcUnits}]`, USDC in base units: answers the signature of the gift. */
  sandbox_fund({ faucet }, params) {
    const to = addressAt(params, 0);
    const config = configAt(params, 1);
    const lamports = integerOf(config, 'lamports', 0, MAX_LAMPORTS);
    const usdcUnits = integerOf(config, 'usdcUnits', 0, MAX_USDC_UNITS);
    if (lamports + usdcUnits === 0) throw invalid('Invalid params: lamports or usdcUnits must be above 0.');
    return faucet.give(to, { lamports: BigInt(lamports), usdcUnits: BigInt(usdcUnits) });
  },

  /** `[slots]`: lets this many slots pass at once, and answers the slot that is reached. */
  sandbox_advanceSlots({ bank }, params) {
    bank.advance(integerAt(params, 0, MAX_ADVANCED_SLOTS));
    return bank.clock.slot();
  },

  /** `[seconds]`: lets time pass for loans, while slots and clock stay. Answers how many slots that time is. */
  sandbox_passInterest: ({ passInterest }, params) =>
    passInterest(1_000 * integerAt(params, 0, MAX_PASSED_SECONDS)),

  /** `[address, {offset, hex}]`: writes bytes into an account against all rules, for drills. Answers true. */
  sandbox_writeAccount({ bank }, params) {
    const account = bank.account(addressAt(params, 0));
    if (account === null) throw invalid('Invalid param: could not find account');
    const config = configAt(params, 1);
    const offset = integerOf(config, 'offset', 0, account.data.length);
    const bytes = Buffer.from(typeof config.hex === 'string' ? config.hex : '', 'hex');
    if (bytes.length === 0 || offset + bytes.length > account.data.length)
      throw invalid('Invalid params: hex must be bytes that lie within the account.');
    const data = new Uint8Array(account.data);
    data.set(bytes, offset);
    bank.setAccount({ ...account, data });
    return true;
  },

  /** `[address]`: puts the lending program's double at another address too, as an imitator would. Answers true. */
  sandbox_placeLookalike({ bank }, params) {
    bank.placeProgram(addressAt(params, 0), new Uint8Array(readProgram()));
    return true;
  },

  /** `[{fault, method, count, httpStatus, delayMs}]`: sets a fault, and answers all faults that are set. */
  sandbox_setFault: ({ faults }, params) => faults.set(configAt(params, 0)),

  /** Answers true when all changes up to now are on disk. */
  async sandbox_save({ saved }) {
    await saved();
    return true;
  },

  sandbox_clearFaults({ faults }) {
    faults.clear();
    return true;
  },
};
