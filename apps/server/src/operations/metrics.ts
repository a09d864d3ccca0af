import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CallReport } from '../paid-call/outcome.ts';
import type { UpstreamHealth } from '../upstreams/http.ts';

const MICROS = 1_000_000;

export interface Metrics {
  call(report: CallReport): void;
  upstreamRequest(upstream: string, outcome: 'ok' | 'failed', durationMs: number): void;
  reconciled(outcome: string, count: number): void;
  /** One step of a payment on a chain: `verify`, `settle` or `reconcile`. */
  settlement(network: string, step: string, outcome: string): void;
  /** A card order that was paid, ended, went back, came back, or is not what it says. */
  cardOrder(kind: string, what: string): void;
  recharge(outcome: string): void;
  topup(outcome: string): void;
  mail(outcome: string): void;
  /** The text that Prometheus reads. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** What gauges ask for when they are read. */
export interface Watched {
  running(): number;
  waitingForDatabase(): number;
  reservedMicros(): Promise<bigint>;
  owedMicros(): Promise<bigint>;
  /** Calls that may have been captured without their answer being delivered. */
  undelivered(): Promise<number>;
  /** How often the database fell silent since the start. */
  databaseSilences(): number;
  /** Messages of the card provider that nobody has worked yet. */
  cardEventsWaiting(): Promise<number>;
  upstreamHealth(): readonly UpstreamHealth[];
  /** Lists that services look things up in, with the times of the copy in use (ISO 8601). */
  dataLists(): Promise<
    readonly { name: string; publishedAt: string | null; confirmedAt: string | null; failures: number }[]
  >;
  /** Keys of ours that pay for transactions, with what they hold in the smallest unit of what pays there. */
  gas(): readonly {
    network: string;
    duty: string;
    address: string;
    token: { symbol: string; decimals: number };
    balance: bigint | null;
    daysLeft: number | null;
    isAble: boolean;
  }[];
}

/** What an operator can draw: calls, money, upstreams, the database's queue, the process. */
export function createMetrics(watched: Watched & { nowMs(): number }): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const calls = new Counter({
    name: 'farebox_calls_total',
    help: 'Requests to paid services by how they ended',
    labelNames: ['service', 'rail', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'farebox_call_duration_seconds',
    help: 'From request to answer, by service and outcome',
    labelNames: ['service', 'outcome'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25],
    registers,
  });
  const captured = new Counter({
    name: 'farebox_captured_usd_total',
    help: 'Money taken for answers, and for credit that is bought by x402 (services credits/topup/…)',
    labelNames: ['service', 'rail'],
    registers,
  });
  const released = new Counter({
    name: 'farebox_released_usd_total',
    help: 'Money that was reserved and given back',
    labelNames: ['service', 'rail'],
    registers,
  });
  const upstreamRequests = new Counter({
    name: 'farebox_upstream_requests_total',
    help: 'Requests that left for an upstream',
    labelNames: ['upstream', 'outcome'],
    registers,
  });
  const upstreamDuration = new Histogram({
    name: 'farebox_upstream_duration_seconds',
    help: 'How long upstreams take',
    labelNames: ['upstream'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const reconciled = new Counter({
    name: 'farebox_reconciled_total',
    help: 'Unfinished business that a job finished',
    labelNames: ['outcome'],
    registers,
  });
  const settlements = new Counter({
    name: 'farebox_settlements_total',
    help: 'Steps of payments on chains by how they ended: verify, settle, and what the reconciler did',
    labelNames: ['network', 'step', 'outcome'],
    registers,
  });
  const cardOrders = new Counter({
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
  const topups = new Counter({
    name: 'farebox_topups_total',
    help: 'Credit sold on chains, by what became of it outside the call itself',
    labelNames: ['outcome'],
    registers,
  });
  const mails = new Counter({
    name: 'farebox_mails_total',
    help: 'Attempts to send a mail: sent, failed, given-up',
    labelNames: ['outcome'],
    registers,
  });
  /** A figure from the database: without one there is nothing to say, and the other figures are wanted then. */
  const asked = (name: string, help: string, ask: () => Promise<number>) =>
    new Gauge({
      ...{ name, help, registers },
      async collect() {
        const value = await ask().catch(() => null);
        if (value === null) this.reset();
        else this.set(value);
      },
    });
  asked(
    'farebox_reserved_usd',
    'Money reserved by running calls, over all processes',
    async () => Number(await watched.reservedMicros()) / MICROS,
  );
  asked(
    'farebox_owed_usd',
    'What customers owe: payments that went back after their credit was spent',
    async () => Number(await watched.owedMicros()) / MICROS,
  );
  asked(
    'farebox_card_events_waiting',
    'Messages of the card provider that nobody has worked yet',
    watched.cardEventsWaiting,
  );
  asked(
    'farebox_undelivered_calls',
    'Calls that may have been charged without their answer being delivered; they are given back soon',
    watched.undelivered,
  );
  new Gauge({
    name: 'farebox_database_silences',
    help: 'How often the database did not answer within its deadline since the start',
    registers,
    collect() {
      this.set(watched.databaseSilences());
    },
  });
  new Gauge({
    name: 'farebox_running_calls',
    help: 'Paid calls running now in this process',
    registers,
    collect() {
      this.set(watched.running());
    },
  });
  new Gauge({
    name: 'farebox_waiting_for_database',
    help: 'Pieces of work that wait for the next group commit',
    registers,
    collect() {
      this.set(watched.waitingForDatabase());
    },
  });
  new Gauge({
    name: 'farebox_upstream_up',
    help: '1 up, 0 down; upstreams that are not configured are left out',
    labelNames: ['upstream'],
    registers,
    collect() {
      this.reset();
      for (const { name, state } of watched.upstreamHealth()) {
        if (state !== 'not_configured') this.set({ upstream: name }, state === 'up' ? 1 : 0);
      }
    },
  });

  new Gauge({
    name: 'farebox_data_list_age_seconds',
    help: 'Since the list in use was published, and since its publisher last confirmed it',
    labelNames: ['list', 'since'],
    registers,
    async collect() {
      const lists = await watched.dataLists().catch(() => []);
      this.reset();
      for (const { name, publishedAt, confirmedAt } of lists) {
        const times = { published: publishedAt, confirmed: confirmedAt };
        for (const [since, time] of Object.entries(times)) {
          if (time !== null) this.set({ list: name, since }, (watched.nowMs() - Date.parse(time)) / 1_000);
        }
      }
    },
  });
  new Gauge({
    name: 'farebox_data_list_failures',
    help: 'Fetches of a list in a row that failed or brought one that was refused',
    labelNames: ['list'],
    registers,
    async collect() {
      const lists = await watched.dataLists().catch(() => []);
      this.reset();
      for (const { name, failures } of lists) this.set({ list: name }, failures);
    },
  });

  /** A figure for each key that pays for transactions; those of which it is not known are left out. */
  const ofGas = (
    name: string,
    help: string,
    figure: (key: ReturnType<typeof watched.gas>[number]) => number | null,
  ) =>
    new Gauge({
      ...{ name, help, registers },
      labelNames: ['network', 'duty', 'address', 'token'],
      collect() {
        this.reset();
        for (const key of watched.gas()) {
          const value = figure(key);
          const { network, duty, address, token } = key;
          if (value !== null) this.set({ network, duty, address, token: token.symbol }, value);
        }
      },
    });
  ofGas(
    'farebox_gas_balance',
    'What a key of ours holds to pay for transactions, in whole units of the token',
    ({ balance, token }) => (balance === null ? null : Number(balance) / 10 ** token.decimals),
  );
  ofGas(
    'farebox_gas_days_left',
    'How many days that lasts, as the last seven days went',
    ({ daysLeft }) => daysLeft,
  );
  ofGas(
    'farebox_gas_able',
    '1 while the key can pay for transactions; 0: what needs it is not offered, unless another key can',
    ({ isAble }) => (isAble ? 1 : 0),
  );

  /** Finding a series by its labels costs more than counting, so each is looked up once. */
  const bound = new Map<string, { count: Counter.Internal; duration: Histogram.Internal<string> }>();

  return {
    call({ service, rail, outcome, durationMs, priceMicros, callId }) {
      const name = `${service} ${rail} ${outcome}`;
      let series = bound.get(name);
      if (series === undefined) {
        series = { count: calls.labels(service, rail, outcome), duration: duration.labels(service, outcome) };
        bound.set(name, series);
      }
      series.count.inc();
      series.duration.observe(durationMs / 1_000);
      if (outcome === 'captured') captured.inc({ service, rail }, Number(priceMicros) / MICROS);
      else if (callId !== null && outcome !== 'replayed')
        released.inc({ service, rail }, Number(priceMicros) / MICROS);
    },
    upstreamRequest(upstream, outcome, durationMs) {
      upstreamRequests.inc({ upstream, outcome });
      upstreamDuration.observe({ upstream }, durationMs / 1_000);
    },
    settlement: (network, step, outcome) => settlements.inc({ network, step, outcome }),
    cardOrder: (kind, what) => cardOrders.inc({ kind, what }),
    recharge: (outcome) => recharges.inc({ outcome }),
    topup: (outcome) => topups.inc({ outcome }),
    mail: (outcome) => mails.inc({ outcome }),
    reconciled: (outcome, count) => reconciled.inc({ outcome }, count),
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
