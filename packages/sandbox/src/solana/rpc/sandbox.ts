/** Methods that no real node has: money for wallets, time for tests, and faults on order. */
import { addressAt, configAt, integerAt, integerOf, invalid } from '../params.ts';
import type { Methods } from './method.ts';

const MAX_LAMPORTS = 10_000 * 1_000_000_000;
const MAX_USDC_UNITS = 1_000_000_000 * 1_000_000;
/** About five years: programs that accrue by slot must be able to follow. */
const MAX_ADVANCED_SLOTS = 400_000_000;

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

  /** `[slots]`: lets them pass at once and answers the slot that is reached. */
  sandbox_advanceSlots({ bank }, params) {
    bank.advance(integerAt(params, 0, MAX_ADVANCED_SLOTS));
    return bank.clock.slot();
  },

  /** `[{fault, method, count, httpStatus, delayMs}]`: answers the faults that are set. */
  sandbox_setFault: ({ faults }, params) => faults.set(configAt(params, 0)),

  /** Answers when everything up to now is on disk. */
  async sandbox_save({ saved }) {
    await saved();
    return true;
  },

  sandbox_clearFaults({ faults }) {
    faults.clear();
    return true;
  },
};
