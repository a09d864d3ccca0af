/** Stops the lending program's double, as the owners of the real program can stop it. */
import type { Bank } from '../bank.ts';
import { MARKET_ACCOUNT } from './addresses.ts';
import { MARKET } from './layout.ts';

/** Makes the market refuse everything while the work is done. */
export function whileStopped(bank: Bank, work: () => void): void {
  setEmergency(bank, 1);
  try {
    work();
  } finally {
    setEmergency(bank, 0);
  }
}

function setEmergency(bank: Bank, value: number): void {
  const market = bank.account(MARKET_ACCOUNT);
  if (market === null) throw new Error('the chain has no lending program');
  const data = new Uint8Array(market.data);
  data[MARKET.emergency] = value;
  bank.setAccount({ ...market, data });
}
