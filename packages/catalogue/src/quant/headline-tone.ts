/**
 * The tone of a financial headline, read by rules. General word lists fail on such headlines: to them "profit fell" is good
 * and "beats estimates" is nothing. So a direction counts by what moves: profit that falls is bad, debt that falls is good.
 */

/** What it is good to have more of. */
const GOOD_THINGS = words(
  'profit profits earnings revenue revenues sales income margin margins price prices share shares stock stocks dividend growth demand ' +
    'output gdp exports adoption inflow inflows volume users deposits tvl token tokens coin coins market markets currency hashrate ' +
    'guidance outlook forecast confidence orders',
);
/** What it is good to have less of. */
const BAD_THINGS = words(
  'loss losses debt deficit unemployment inflation costs cost default defaults delinquencies outflow outflows layoffs bankruptcies ' +
    'fees risk risks volatility claims jobless fraud',
);
const UP = words(
  'rise rises rose rising risen gain gains gained climb climbs climbed jump jumps jumped surge surges surged soar soars soared rally ' +
    'rallies rallied advance advances advanced increase increases increased grow grows grew rebound rebounds rebounded recover recovers ' +
    'recovered up higher raise raises raised boost boosts boosted strengthen strengthens strengthened widen widens widened',
);
const DOWN = words(
  'fall falls fell falling fallen drop drops dropped decline declines declined slide slides slid slump slumps slumped plunge plunges ' +
    'plunged tumble tumbles tumbled sink sinks sank slip slips slipped dip dips dipped decrease decreases decreased shrink shrinks shrank ' +
    'down lower cut cuts weaken weakens weakened narrow narrows narrowed slow slows slowed lose loses lost crash crashes crashed',
);
/** Good and bad by themselves. */
const GOOD = words(
  'beat beats bullish upgrade upgrades upgraded outperform outperforms approve approves approved approval partnership breakthrough win wins ' +
    'won profitable strong stronger strongest optimism optimistic support supports buyback listing lists launch launches milestone ' +
    'success successful resilient upbeat',
);
const BAD = words(
  'miss misses missed bearish downgrade downgrades downgraded underperform hack hacks hacked hacker hackers exploit exploits exploited drain ' +
    'drained rug scam scams lawsuit sue sues sued probe investigation fined fine bankruptcy bankrupt insolvent delist delists delisted depeg ' +
    'depegs depegged liquidation liquidations halt halts halted suspend suspends suspended recall warn warns warned warning fears fear crisis ' +
    'selloff weak weaker weakest recession fraudulent stolen breach breached collapse collapses collapsed sanctions ban bans banned',
);
const NEGATIONS = words(
  'not no never without fails failed fail denies denied rejects rejected despite unlikely',
);
/** What stands behind these has another subject. */
const CLAUSE_BREAKS = words('as after amid on while but despite because since before when to and');
/** Words after a negation that it turns. */
const NEGATION_REACH = 3;
/** Words between what moves and how it moves. */
const PAIR_REACH = 4;

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '));
}

/**
 * Reads a headline.
 *
 * @returns -1 (bad) to 1 (good); null when it holds nothing that the rules know, which is not the same as 0
 */
export function headlineTone(headline: string): number | null {
  const tokens = headline
    .toLowerCase()
    .replace(/[’']s\b/g, '')
    .replace(/n[’']t\b/g, ' not')
    .split(/[^a-z-]+/)
    .filter((token) => token !== '');
  const scores: number[] = [];
  for (const [at, token] of tokens.entries()) {
    const value = ownTone(tokens, at, token);
    if (value !== 0) scores.push(isNegated(tokens, at) ? -value : value);
  }
  if (scores.length === 0) return null;
  const sum = scores.reduce((total, score) => total + score, 0);
  // One clear word is a hint, several are a verdict.
  return Math.tanh(sum / 1.5);
}

function ownTone(tokens: readonly string[], at: number, token: string): number {
  if (GOOD.has(token)) return 1;
  if (BAD.has(token)) return -1;
  const direction = UP.has(token) ? 1 : DOWN.has(token) ? -1 : 0;
  if (direction === 0) return 0;
  // What moves stands before the verb ("profit fell") or, after a verb with an object, behind it ("cuts costs").
  const thing =
    thingIn(tokens.slice(Math.max(0, at - PAIR_REACH), at).reverse()) ??
    thingIn(tokens.slice(at + 1, at + 1 + PAIR_REACH));
  return thing !== undefined && BAD_THINGS.has(thing) ? -direction : direction;
}

/** The first thing that is counted, up to where another clause begins. */
function thingIn(near: readonly string[]): string | undefined {
  const end = near.findIndex((word) => CLAUSE_BREAKS.has(word));
  return (end === -1 ? near : near.slice(0, end)).find(
    (word) => GOOD_THINGS.has(word) || BAD_THINGS.has(word),
  );
}

function isNegated(tokens: readonly string[], at: number): boolean {
  return tokens.slice(Math.max(0, at - NEGATION_REACH), at).some((token) => NEGATIONS.has(token));
}
