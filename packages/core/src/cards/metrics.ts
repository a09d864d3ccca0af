import { Counter, Registry } from 'prom-client';
import { askedGauge, MICROS_IN_USD } from '../metrics.ts';

/** The metrics of card money. */
export function createCardMetrics(watched: {
  owedMicros(): Promise<bigint>;
  /** Messages of the provider that nobody has worked yet. */
  eventsWaiting(): Promise<number>;
}) {
  const registry = new Registry();
  const registers = [registry];
  const orders = new Counter({
    name: 'farebox_card_orders_total',
    help: 'What became of orders by card: paid, over, reversed, restored, mismatch',
    labelNames: ['kind', 'what'],
    registers,
  });
  const recharges = new Counter({
    name: 'farebox_recharges_total',
    help: 'Accounts whose balance was to be refilled: charging, waiting, off, unknown',
    labelNames: ['outcome'],
    registers,
  });
  askedGauge(
    registry,
    'farebox_owed_usd',
    'What customers owe: payments that went back after their credit was spent',
    async () => Number(await watched.owedMicros()) / MICROS_IN_USD,
  );
  askedGauge(
    registry,
    'farebox_card_events_waiting',
    'Messages of the card provider that nobody has worked yet',
    watched.eventsWaiting,
  );
  return {
    registry,
    /** A card order that was paid, ended, went back, came back, or is not what it says. */
    order: (kind: string, what: string) => orders.inc({ kind, what }),
    recharge: (outcome: string) => recharges.inc({ outcome }),
  };
}
