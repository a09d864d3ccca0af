import { Gauge, Registry } from 'prom-client';
import type { GasStanding } from './gas-tanks.ts';

/** Metrics of the keys that pay for our transactions. Keys whose balance is not known are left out. */
export function createGasMetrics(standings: () => readonly GasStanding[]): Registry {
  const registry = new Registry();
  const ofEach = (name: string, help: string, figure: (key: GasStanding) => number | null) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      labelNames: ['network', 'duty', 'address', 'token'],
      collect() {
        this.reset();
        for (const key of standings()) {
          const value = figure(key);
          const { network, duty, address, token } = key;
          if (value !== null) this.set({ network, duty, address, token: token.symbol }, value);
        }
      },
    });
  ofEach(
    'farebox_gas_balance',
    'What a key of ours holds to pay for transactions, in whole units of the token',
    ({ balance, token }) => (balance === null ? null : Number(balance) / 10 ** token.decimals),
  );
  ofEach(
    'farebox_gas_days_left',
    'How many days that lasts, as the last seven days went',
    ({ daysLeft }) => daysLeft,
  );
  ofEach(
    'farebox_gas_able',
    '1 while the key can pay for transactions; 0: what needs it is not offered, unless another key can',
    ({ isAble }) => (isAble ? 1 : 0),
  );
  return registry;
}
