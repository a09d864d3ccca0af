/** The categories of the catalog, in the order in which the catalog shows them, and what each holds. */
export const ABOUT_TAGS = {
  Onboarding: 'A key, bought with the first call.',
  Discovery: 'Cheap calls that show whether paying works.',
  'Trading Intelligence': 'Tokens, wallets, gas and liquidity, from chains and markets.',
  Execution: 'Wallets, contracts, and transactions made ready to be signed.',
  Premium: 'Audits of contracts, rules that touch an operation, identities of agents.',
  'Real Estate': 'Values of homes, leases and construction sites.',
  Banking: 'Lists of sanctions, credit and fraud.',
  Investment: 'The tone of the news, signals and portfolios.',
  'Market Intelligence': 'Risk, correlation and arbitrage, computed from market prices.',
  'Prediction Markets': 'Odds, quotes and order books of Polymarket and Kalshi.',
  'Satellite Intelligence': 'Air, water, ground and fires at a place.',
  'IoT & DePIN': 'Readings of registered devices and of weather stations.',
  'AI Services': 'Text by a language model.',
} as const;
export const TAGS: readonly string[] = Object.keys(ABOUT_TAGS);
