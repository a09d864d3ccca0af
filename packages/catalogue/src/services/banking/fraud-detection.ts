import { chainName, outsiderText } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { fraudScore, type Payment } from '../../quant/fraud-features.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { requireCoverage } from '../shared/screening/enough-evidence.ts';
import { walletActivity } from '../shared/wallet/wallet-activity.ts';
import { isEvmAddress } from '../shared/wallet/wallet-address.ts';
import { isNotConfigured, namedChain } from '../shared/wallet/wallet-chains.ts';
import { addressLists, hitsOf } from '../shared/wallet/wallet-screening.ts';

const DAY_MS = 86_400_000;
const MOST_EARLIER = 1_000;
const REVIEW_FROM = 25;
const DISCLAIMER =
  'Information scored by the features shown, from what you sent and from the sources named. It is not a verdict about anybody.';

/** The names that clients use for each field; the first that is present counts. */
const NAMES = {
  amount: ['amount', 'amountUsd', 'value', 'total', 'transactionAmount'],
  counterparty: ['to', 'toAddress', 'recipient', 'counterparty', 'beneficiary', 'merchant', 'merchantId'],
  wallet: ['address', 'walletAddress', 'from', 'fromAddress', 'sender', 'payer'],
  time: ['timestamp', 'time', 'date', 'createdAt'],
  currency: ['currency', 'asset', 'token'],
} as const;
const COUNTRIES = [
  'country',
  'ipCountry',
  'cardCountry',
  'billingCountry',
  'shippingCountry',
  'senderCountry',
  'recipientCountry',
] as const;
const READ_FIELDS = [...Object.values(NAMES).flat(), ...COUNTRIES, 'chain'];

const record = z.record(z.string().max(100), z.unknown());

export default defineService({
  path: 'fraud-detection',
  name: 'Fraud Detection',
  tag: 'Banking',
  priceUsd: '0.75',
  summary:
    'Compares a transaction with its history, lists and the chain: every feature with its weight and what it adds to the score.',
  keywords:
    'fraud fraudulent scam scammer suspicious payment transaction anomaly unusual stolen card fake chargeback phishing risk score check legitimate order abuse laundering detect',
  input: z.object({
    transactionData: record
      .refine((data) => Object.keys(data).length <= 200, 'must have at most 200 fields')
      .refine((data) => READ_FIELDS.some((name) => data[name] !== undefined && data[name] !== null), {
        error: `must hold at least one of: ${READ_FIELDS.join(', ')}`,
      })
      .describe(
        'The transaction: amount, currency, to, address, timestamp, chain and countries such as ipCountry',
      ),
    historicalPatterns: z
      .array(record)
      .max(MOST_EARLIER)
      .default([])
      .describe('Earlier transactions of the same payer, with the same fields; up to 1,000'),
  }),
  output: z.object({
    data: z
      .object({
        fraudScore: z.number().describe('The contributions added up, at most 100'),
        riskLevel: z.enum(['Low', 'Medium', 'High', 'Critical']).describe('Band of the score'),
        features: z
          .array(
            z.object({
              code: z.string().describe('A name for machines'),
              weight: z.number().describe('The most that it can add'),
              value: z.number().nullable().describe('How far it is met, 0 to 1; null: not evaluated'),
              contribution: z.number().nullable().describe('weight times value; null: not evaluated'),
              because: z.string().describe('Why, in a sentence'),
            }),
          )
          .describe('What the score is made of'),
        suspiciousPatterns: z
          .array(
            z.object({
              pattern: z.string().describe('The feature'),
              severity: z.string().describe('How grave it is'),
              evidence: z.string().describe('What shows it'),
            }),
          )
          .describe('Features that are met'),
        anomalies: z
          .array(
            z.object({
              type: z.string().describe('The feature'),
              description: z.string().describe('Why, in a sentence'),
              score: z.number().describe('How far it is met, 0 to 1'),
            }),
          )
          .describe('Those of them about amount, pace and hour'),
        listMatches: z
          .array(
            z.object({
              list: z.string().describe('The list, by its short name'),
              uid: z.string().describe('Id of the entry in its list'),
              name: outsiderText(300).describe('Whom the list names'),
              address: z.string().describe('The address'),
              publishedAt: z.string().describe('When its publisher issued it'),
            }),
          )
          .describe('Addresses that a sanctions list names'),
        recommendation: z.string().describe('What to do, in a sentence'),
        requiresHumanReview: z.boolean().describe('Whether a person should decide'),
        confidenceScore: z.number().describe('Share of the weights that could be evaluated, 0.3 to 1'),
        historyUsed: z.number().int().describe('Transactions of the history that were used'),
        fieldsRead: z.array(z.string()).describe('Fields of the request that were used'),
        disclaimer: z.string().describe('What the answer is not, in a sentence'),
      })
      .describe('The assessment'),
  }),
  example: {
    transactionData: {
      amount: 9_800,
      currency: 'USD',
      to: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
      timestamp: '2026-11-20T03:10:00Z',
      ipCountry: 'SG',
      cardCountry: 'DE',
    },
    historicalPatterns: [40, 55, 38, 61, 47].map((amount, day) => ({
      amount,
      to: 'shop-1',
      timestamp: `2026-11-1${day}T12:00:00Z`,
    })),
  },
  aliases: { transaction: 'transactionData', history: 'historicalPatterns' },
  // Clients send the transaction itself as the body.
  adapt(body) {
    if (body.transactionData !== undefined) return body;
    const { historicalPatterns, ...transactionData } = body;
    if (Object.keys(transactionData).length === 0) return body;
    return historicalPatterns === undefined ? { transactionData } : { transactionData, historicalPatterns };
  },
  needs: [EVM_CHAIN_NAMES],
  uses: ['etherscan'],
  requires: ['lists'],
  timeoutMs: 25_000,
  async run({ transactionData, historicalPatterns }, { upstreams, lists, nowMs }) {
    const own = paymentOf(transactionData, 'transactionData');
    const history = historicalPatterns.map((each, index) => paymentOf(each, `historicalPatterns.${index}`));
    const wallet = textOf(transactionData, NAMES.wallet);
    const opened = await addressLists(lists);
    const sources: Source[] = [...opened.sources];
    const notes = [...opened.notes];
    const addresses = [own.counterparty, wallet].filter(
      (each): each is string => each !== null && /^[a-zA-Z0-9]{26,100}$/.test(each),
    );
    const matches = addresses.flatMap((address) =>
      hitsOf(opened.sanctions, address).map(({ list, uid, name, publishedAt }) => ({
        list,
        uid,
        name,
        address,
        publishedAt,
      })),
    );
    const mixers =
      opened.mixers === null
        ? null
        : addresses.flatMap((address) => hitsOf(opened.mixers === null ? [] : [opened.mixers], address));

    let age: { days: number | null; transactions: number } | null = null;
    if (wallet !== null && isEvmAddress(wallet)) {
      const asked = chainName.safeParse(transactionData.chain ?? 'base');
      if (!asked.success) {
        throw noAnswer(
          'CHAIN_NOT_SUPPORTED',
          `transactionData.chain is none that is known here.`,
          'transactionData.chain',
        );
      }
      try {
        const head = await namedChain(asked.data, upstreams);
        const activity = await walletActivity(head, wallet, upstreams);
        sources.push(head.source, ...activity.sources);
        notes.push(...activity.notes);
        const days =
          activity.first === null ? null : Math.floor((nowMs() - activity.first.timestampMs) / DAY_MS);
        age = { days: days === null ? null : Math.max(0, days), transactions: activity.transactions };
      } catch (error) {
        // A named chain that is not configured is for the caller to correct; base is only our default.
        if (!(error instanceof UpstreamUnavailable && isNotConfigured(error))) {
          if (transactionData.chain !== undefined || error instanceof UpstreamUnavailable) throw error;
        }
        notes.push('The wallet was looked at on no chain: none was named, and base is not configured here.');
      }
    }

    const currency = textOf(transactionData, NAMES.currency);
    const card = fraudScore({
      ...own,
      countries: COUNTRIES.flatMap((name) => {
        const country = textOf(transactionData, [name]);
        return country === null ? [] : [country];
      }),
      inUsd:
        currency === null ? transactionData.amountUsd !== undefined : /^(usd|usdc|usdt|dai)$/i.test(currency),
      history,
      listedCounterparty: addresses.length === 0 ? null : matches.length > 0,
      mixerCounterparty: addresses.length === 0 || mixers === null ? null : mixers.length > 0,
      walletAgeDays: age?.days ?? null,
      walletTransactions: age?.transactions ?? null,
    });
    requireCoverage(
      card.confidence,
      card.features
        .filter(({ value }) => value === null)
        .sort((a, b) => b.weight - a.weight)
        .map(({ code, because }) => `${code} (${because.replace('not evaluated: ', '')})`),
      'transactionData',
    );
    const met = card.features.filter(({ contribution }) => (contribution ?? 0) > 0);
    return answer(
      {
        data: {
          fraudScore: card.score,
          riskLevel: card.level,
          features: card.features,
          suspiciousPatterns: met.map(({ code, contribution, because }) => ({
            pattern: code,
            severity: (contribution ?? 0) >= 50 ? 'critical' : (contribution ?? 0) >= 15 ? 'high' : 'medium',
            evidence: because,
          })),
          anomalies: met
            .filter(({ code }) => ['AMOUNT_OUTLIER', 'VELOCITY', 'UNUSUAL_HOUR'].includes(code))
            .map(({ code, because, value }) => ({ type: code, description: because, score: value ?? 0 })),
          listMatches: matches,
          recommendation:
            matches.length > 0
              ? 'Do not go on: an address is listed. Ask whoever answers for sanctions.'
              : card.score >= REVIEW_FROM
                ? 'Let somebody look at the features above before it goes on.'
                : 'Nothing in what was evaluated speaks against it.',
          requiresHumanReview: matches.length > 0 || card.score >= REVIEW_FROM,
          confidenceScore: card.confidence,
          historyUsed: history.length,
          fieldsRead: READ_FIELDS.filter((name) => transactionData[name] !== undefined),
          disclaimer: DISCLAIMER,
        },
      },
      {
        method:
          'Each feature is met from 0 to 1 and adds its weight times that. Amounts are outliers by the modified z-score (Iglewicz and Hoaglin 1993: 0.6745 (x - median) / MAD, from 3.5 to 10). Low is below 25, Medium below 50, High below 75. What is not given is not evaluated and lowers confidenceScore alone; below 0.3 there is no verdict, and nothing is charged.',
        sources,
        notes,
      },
    );
  },
});

function paymentOf(data: Record<string, unknown>, path: string): Payment {
  const amount = firstOf(data, NAMES.amount);
  const number =
    typeof amount === 'string' && amount.trim() !== '' ? Number(amount.replaceAll(',', '')) : amount;
  if (amount !== undefined && (typeof number !== 'number' || !Number.isFinite(number) || number < 0)) {
    throw noAnswer('NOT_AN_AMOUNT', `${path}.amount must be a number of at least 0.`, `${path}.amount`);
  }
  const time = firstOf(data, NAMES.time);
  const atMs = timeOf(time);
  if (time !== undefined && atMs === null) {
    throw noAnswer(
      'NOT_A_TIME',
      `${path}.timestamp must be ISO 8601 or seconds since 1970.`,
      `${path}.timestamp`,
    );
  }
  return {
    amount: typeof number === 'number' ? number : null,
    atMs,
    counterparty: textOf(data, NAMES.counterparty),
  };
}

function timeOf(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  // Numbers up to the year 5000 are read as seconds, larger ones as milliseconds.
  const ms =
    typeof number === 'number'
      ? number < 1e11
        ? number * 1_000
        : number
      : typeof number === 'string'
        ? Date.parse(number)
        : Number.NaN;
  return Number.isFinite(ms) && Math.abs(ms) < 8e15 ? ms : null;
}

function firstOf(data: Record<string, unknown>, names: readonly string[]): unknown {
  const name = names.find((each) => data[each] !== undefined && data[each] !== null);
  return name === undefined ? undefined : data[name];
}

function textOf(data: Record<string, unknown>, names: readonly string[]): string | null {
  const value = firstOf(data, names);
  return typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, 200) : null;
}
