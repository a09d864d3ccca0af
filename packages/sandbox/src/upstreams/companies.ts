/**
 * The companies and currencies of the sandbox's world. Names, tickers and CIKs are the real ones, but for ACME, which does not
 * exist. Exchange rates are invented.
 */

export interface Company {
  ticker: string;
  name: string;
  /** The company's name in headlines. */
  called: string;
  /** The Central Index Key: the company's number at the SEC. */
  cik: number;
}

export const COMPANIES: readonly Company[] = [
  { ticker: 'AAPL', name: 'Apple Inc.', called: 'Apple', cik: 320_193 },
  { ticker: 'MSFT', name: 'MICROSOFT CORP', called: 'Microsoft', cik: 789_019 },
  { ticker: 'NVDA', name: 'NVIDIA CORP', called: 'Nvidia', cik: 1_045_810 },
  { ticker: 'TSLA', name: 'Tesla, Inc.', called: 'Tesla', cik: 1_318_605 },
  { ticker: 'COIN', name: 'Coinbase Global, Inc.', called: 'Coinbase Global', cik: 1_679_788 },
  { ticker: 'BRK-B', name: 'BERKSHIRE HATHAWAY INC', called: 'Berkshire Hathaway', cik: 1_067_983 },
  { ticker: 'ACME', name: 'ACME SANDBOX CORP', called: 'Acme Sandbox', cik: 9_999_999 },
];

export interface Currency {
  code: string;
  /** The currency's name in headlines, after "the". */
  called: string;
  /** The price of one unit in USD at the market's reference time. */
  anchorUsd: number;
}

export const CURRENCIES: readonly Currency[] = [
  { code: 'USD', called: 'US dollar', anchorUsd: 1 },
  { code: 'EUR', called: 'euro zone', anchorUsd: 1.16 },
  { code: 'GBP', called: 'British pound', anchorUsd: 1.32 },
  { code: 'JPY', called: 'Japanese yen', anchorUsd: 0.0065 },
  { code: 'CHF', called: 'Swiss franc', anchorUsd: 1.25 },
  { code: 'AUD', called: 'Australian dollar', anchorUsd: 0.65 },
  { code: 'CAD', called: 'Canadian dollar', anchorUsd: 0.71 },
  { code: 'SEK', called: 'Swedish krona', anchorUsd: 0.105 },
];
