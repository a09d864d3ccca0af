/**
 * The news of the sandbox's world: stories about coins, companies, currencies and a few topics, made for each hour. Stories about
 * a coin follow its price: after a rise more of them are good. Every title says that it is synthetic.
 */
import { COINS, type Coin } from './assets.ts';
import { COMPANIES, CURRENCIES } from './companies.ts';
import type { Market } from './market.ts';
import { keyOf, smooth, uniform } from './noise.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

export interface Story {
  title: string;
  url: string;
  atMs: number;
  /** From -9 (bad) to 9 (good), on the scale of GDELT's tone. */
  tone: number;
  subject: string;
}

export interface News {
  /** The stories between two times about all subjects that any of the phrases names, newest first. */
  on(phrases: readonly string[], fromMs: number, toMs: number): Story[];
}

interface Subject {
  called: string;
  /** A phrase means this subject if it contains one of these words. */
  names: readonly string[];
  coin: Coin | null;
  /** The mean number of stories an hour. */
  perHour: number;
}

const TOPICS = [
  'interest rates',
  'inflation',
  'artificial intelligence',
  'climate',
  'oil price',
  'regulation',
];
const GOOD_TITLES = [
  '{} rises as demand grows',
  '{} gains for another day on strong inflows',
  'Analysts turn bullish on {}',
  '{} beats expectations',
  'Optimism on {} after upbeat figures',
];
const BAD_TITLES = [
  '{} falls as demand weakens',
  '{} slides on fears over growth',
  'Analysts turn bearish on {}',
  '{} misses expectations',
  'Outflows increased: {} drops again',
];
const PLAIN_TITLES = ['What to know about {} today', '{} in five charts', 'Conference on {} opens'];

/** Opens the news of a market. They follow from its seed and its prices. */
export function openNews(market: Market): News {
  const subjects: Subject[] = [
    ...COINS.map((coin) => ({
      called: coin.name,
      names: [coin.name.toLowerCase(), coin.symbol.toLowerCase(), coin.id.replace(/-/g, ' ')],
      coin,
      perHour: coin.turnoverUsd > 1e9 ? 2.5 : coin.turnoverUsd > 5e7 ? 0.8 : 0.15,
    })),
    ...COMPANIES.map(({ ticker, called }) => ({
      called,
      names: [ticker.toLowerCase(), called.toLowerCase()],
      coin: null,
      perHour: 1.2,
    })),
    ...CURRENCIES.map(({ code, called }) => ({
      called: `the ${called}`,
      names: [called.toLowerCase(), `${code.toLowerCase()} exchange rate`],
      coin: null,
      perHour: 0.9,
    })),
    ...TOPICS.map((topic) => ({ called: topic, names: [topic], coin: null, perHour: 1 })),
  ];

  function means(phrase: string, { names }: Subject): boolean {
    const words = ` ${phrase.toLowerCase().replace(/[^a-z0-9]+/g, ' ')} `;
    return names.some((name) => words.includes(` ${name.replace(/[^a-z0-9]+/g, ' ').trim()} `));
  }

  /** The mood on a subject at a time: it changes slowly at random. For a coin, its price change in 24 hours counts as well. */
  function moodOf(subject: Subject, atMs: number): number {
    const tide = smooth(keyOf(market.seed, `mood:${subject.called}`), atMs / (2 * DAY_MS));
    if (subject.coin === null) return tide;
    const change = market.priceUsd(subject.coin, atMs) / market.priceUsd(subject.coin, atMs - DAY_MS) - 1;
    return 0.4 * tide + (change * 15) / (1 + market.volatility(subject.coin));
  }

  function storiesOf(subject: Subject, hour: number): Story[] {
    const key = keyOf(market.seed, `news:${subject.called}`);
    const count = Math.floor(subject.perHour + uniform(key, hour));
    return Array.from({ length: count }, (_, at) => {
      const index = hour * 8 + at;
      const atMs = hour * HOUR_MS + Math.floor(uniform(key ^ 1, index) * HOUR_MS);
      const tone = Math.max(
        -9,
        Math.min(9, 2.2 * moodOf(subject, atMs) + 5 * (uniform(key ^ 2, index) - 0.5)),
      );
      const titles = tone > 0.8 ? GOOD_TITLES : tone < -0.8 ? BAD_TITLES : PLAIN_TITLES;
      const title = titles[Math.floor(uniform(key ^ 3, index) * titles.length)] ?? '{}';
      const filled = title.replace('{}', subject.called);
      return {
        title: `${filled.charAt(0).toUpperCase()}${filled.slice(1)} (synthetic headline)`,
        url: `https://news.sandbox.invalid/${subject.called.toLowerCase().replace(/[^a-z0-9]+/g, '-')}/${index}`,
        atMs,
        tone,
        subject: subject.called,
      };
    });
  }

  return {
    on(phrases, fromMs, toMs) {
      const wanted = subjects.filter((subject) => phrases.some((phrase) => means(phrase, subject)));
      const stories: Story[] = [];
      for (const subject of wanted) {
        for (let hour = Math.floor(fromMs / HOUR_MS); hour * HOUR_MS < toMs; hour++) {
          for (const story of storiesOf(subject, hour)) {
            if (story.atMs >= fromMs && story.atMs < toMs) stories.push(story);
          }
        }
      }
      return stories.sort((a, b) => b.atMs - a.atMs);
    },
  };
}
