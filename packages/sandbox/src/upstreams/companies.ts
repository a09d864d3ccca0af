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
  { ticker: 'GOOGL', name: 'Alphabet Inc.', called: 'Alphabet', cik: 1_652_044 },
  { ticker: 'GOOG', name: 'Alphabet Inc.', called: 'Google', cik: 1_652_044 },
  { ticker: 'AMZN', name: 'AMAZON COM INC', called: 'Amazon', cik: 1_018_724 },
  { ticker: 'META', name: 'Meta Platforms, Inc.', called: 'Meta Platforms', cik: 1_326_801 },
  { ticker: 'AVGO', name: 'Broadcom Inc.', called: 'Broadcom', cik: 1_730_168 },
  { ticker: 'ORCL', name: 'ORACLE CORP', called: 'Oracle', cik: 1_341_439 },
  { ticker: 'JPM', name: 'JPMORGAN CHASE & CO', called: 'JPMorgan', cik: 19_617 },
  { ticker: 'WMT', name: 'Walmart Inc.', called: 'Walmart', cik: 104_169 },
  { ticker: 'V', name: 'VISA INC.', called: 'Visa', cik: 1_403_161 },
  { ticker: 'LLY', name: 'ELI LILLY & Co', called: 'Eli Lilly', cik: 59_478 },
  { ticker: 'SPY', name: 'SPDR S&P 500 ETF TRUST', called: 'S&P 500', cik: 884_394 },
  { ticker: 'QQQ', name: 'INVESCO QQQ TRUST, SERIES 1', called: 'Invesco QQQ', cik: 1_067_839 },
  { ticker: 'MA', name: 'Mastercard Inc', called: 'Mastercard', cik: 1_141_391 },
  { ticker: 'NFLX', name: 'NETFLIX INC', called: 'Netflix', cik: 1_065_280 },
  { ticker: 'XOM', name: 'EXXON MOBIL CORP', called: 'Exxon Mobil', cik: 34_088 },
  { ticker: 'PLTR', name: 'Palantir Technologies Inc.', called: 'Palantir', cik: 1_321_655 },
  { ticker: 'JNJ', name: 'JOHNSON & JOHNSON', called: 'Johnson & Johnson', cik: 200_406 },
  { ticker: 'COST', name: 'COSTCO WHOLESALE CORP /NEW', called: 'Costco', cik: 909_832 },
  { ticker: 'HD', name: 'HOME DEPOT, INC.', called: 'Home Depot', cik: 354_950 },
  { ticker: 'BABA', name: 'Alibaba Group Holding Ltd', called: 'Alibaba', cik: 1_577_552 },
  { ticker: 'ABBV', name: 'AbbVie Inc.', called: 'AbbVie', cik: 1_551_152 },
  { ticker: 'BAC', name: 'BANK OF AMERICA CORP /DE/', called: 'Bank of America', cik: 70_858 },
  { ticker: 'ASML', name: 'ASML HOLDING NV', called: 'ASML Holding', cik: 937_966 },
  { ticker: 'PG', name: 'PROCTER & GAMBLE Co', called: 'Procter & Gamble', cik: 80_424 },
  { ticker: 'GE', name: 'GENERAL ELECTRIC CO', called: 'General Electric', cik: 40_545 },
  { ticker: 'CVX', name: 'CHEVRON CORP', called: 'Chevron', cik: 93_410 },
  { ticker: 'SAP', name: 'SAP SE', called: 'SAP SE', cik: 1_000_184 },
  { ticker: 'TMUS', name: 'T-Mobile US, Inc.', called: 'T-Mobile', cik: 1_283_699 },
  { ticker: 'KO', name: 'COCA COLA CO', called: 'Coca-Cola', cik: 21_344 },
  { ticker: 'UNH', name: 'UNITEDHEALTH GROUP INC', called: 'UnitedHealth', cik: 731_766 },
  { ticker: 'NVO', name: 'NOVO NORDISK A S', called: 'Novo Nordisk', cik: 353_278 },
  { ticker: 'CSCO', name: 'CISCO SYSTEMS, INC.', called: 'Cisco', cik: 858_877 },
  { ticker: 'WFC', name: 'WELLS FARGO & COMPANY/MN', called: 'Wells Fargo', cik: 72_971 },
  { ticker: 'AMD', name: 'ADVANCED MICRO DEVICES INC', called: 'Advanced Micro Devices', cik: 2_488 },
  { ticker: 'MS', name: 'MORGAN STANLEY', called: 'Morgan Stanley', cik: 895_421 },
  { ticker: 'IBM', name: 'INTERNATIONAL BUSINESS MACHINES CORP', called: 'IBM', cik: 51_143 },
  { ticker: 'GS', name: 'GOLDMAN SACHS GROUP INC', called: 'Goldman Sachs', cik: 886_982 },
  { ticker: 'TM', name: 'TOYOTA MOTOR CORP/', called: 'Toyota', cik: 1_094_517 },
  { ticker: 'CRM', name: 'Salesforce, Inc.', called: 'Salesforce', cik: 1_108_524 },
  { ticker: 'AXP', name: 'AMERICAN EXPRESS CO', called: 'American Express', cik: 4_962 },
  { ticker: 'CAT', name: 'CATERPILLAR INC', called: 'Caterpillar', cik: 18_230 },
  { ticker: 'MCD', name: 'MCDONALDS CORP', called: "McDonald's", cik: 63_908 },
  { ticker: 'RTX', name: 'RTX Corp', called: 'RTX', cik: 101_829 },
  { ticker: 'T', name: 'AT&T INC.', called: 'AT&T', cik: 732_717 },
  { ticker: 'SHEL', name: 'Shell plc', called: 'Shell', cik: 1_306_965 },
  { ticker: 'DIS', name: 'Walt Disney Co', called: 'Walt Disney', cik: 1_744_489 },
  { ticker: 'MRK', name: 'Merck & Co., Inc.', called: 'Merck', cik: 310_158 },
  { ticker: 'SHOP', name: 'SHOPIFY INC.', called: 'Shopify', cik: 1_594_805 },
  { ticker: 'NOW', name: 'ServiceNow, Inc.', called: 'ServiceNow', cik: 1_373_715 },
  { ticker: 'INTU', name: 'INTUIT INC.', called: 'Intuit', cik: 896_878 },
  { ticker: 'UBER', name: 'Uber Technologies, Inc', called: 'Uber', cik: 1_543_151 },
  { ticker: 'PEP', name: 'PEPSICO INC', called: 'PepsiCo', cik: 77_476 },
  { ticker: 'C', name: 'CITIGROUP INC', called: 'Citigroup', cik: 831_001 },
  { ticker: 'MU', name: 'MICRON TECHNOLOGY INC', called: 'Micron Technology', cik: 723_125 },
  { ticker: 'VZ', name: 'VERIZON COMMUNICATIONS INC', called: 'Verizon', cik: 732_712 },
  { ticker: 'QCOM', name: 'QUALCOMM INC/DE', called: 'Qualcomm', cik: 804_328 },
  { ticker: 'TXN', name: 'TEXAS INSTRUMENTS INC', called: 'Texas Instruments', cik: 97_476 },
  {
    ticker: 'TSM',
    name: 'TAIWAN SEMICONDUCTOR MANUFACTURING CO LTD',
    called: 'Taiwan Semiconductor',
    cik: 1_046_179,
  },
  { ticker: 'INTC', name: 'INTEL CORP', called: 'Intel', cik: 50_863 },
  { ticker: 'ADBE', name: 'ADOBE INC.', called: 'Adobe', cik: 796_343 },
  { ticker: 'PYPL', name: 'PayPal Holdings, Inc.', called: 'PayPal', cik: 1_633_917 },
  { ticker: 'MSTR', name: 'Strategy Inc', called: 'MicroStrategy', cik: 1_050_446 },
  { ticker: 'HOOD', name: 'Robinhood Markets, Inc.', called: 'Robinhood', cik: 1_783_879 },
  { ticker: 'ABNB', name: 'Airbnb, Inc.', called: 'Airbnb', cik: 1_559_720 },
  { ticker: 'SNOW', name: 'Snowflake Inc.', called: 'Snowflake', cik: 1_640_147 },
  { ticker: 'SPOT', name: 'Spotify Technology S.A.', called: 'Spotify', cik: 1_639_920 },
  { ticker: 'NKE', name: 'NIKE, Inc.', called: 'Nike', cik: 320_187 },
  { ticker: 'SBUX', name: 'STARBUCKS CORP', called: 'Starbucks', cik: 829_224 },
  { ticker: 'TGT', name: 'TARGET CORP', called: 'Target Corporation', cik: 27_419 },
  { ticker: 'PFE', name: 'PFIZER INC', called: 'Pfizer', cik: 78_003 },
  { ticker: 'BA', name: 'BOEING CO', called: 'Boeing', cik: 12_927 },
  { ticker: 'F', name: 'FORD MOTOR CO', called: 'Ford', cik: 37_996 },
  { ticker: 'GM', name: 'General Motors Co', called: 'General Motors', cik: 1_467_858 },
  { ticker: 'GME', name: 'GameStop Corp.', called: 'GameStop', cik: 1_326_380 },
  { ticker: 'RBLX', name: 'Roblox Corp', called: 'Roblox', cik: 1_315_098 },
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
