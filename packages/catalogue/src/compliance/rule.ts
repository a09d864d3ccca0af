/** What a rule of the base is, and which places and subjects the base knows. */

export const JURISDICTIONS = {
  INTL: 'International',
  US: 'United States',
  'US-NY': 'New York',
  'US-CA': 'California',
  'US-LA': 'Louisiana',
  'US-IL': 'Illinois',
  EU: 'European Union',
  UK: 'United Kingdom',
  SG: 'Singapore',
  HK: 'Hong Kong',
  JP: 'Japan',
  CH: 'Switzerland',
  CA: 'Canada',
  AU: 'Australia',
  AE: 'United Arab Emirates (federal law, and Dubai)',
} as const;
export type Jurisdiction = keyof typeof JURISDICTIONS;

export const SUBJECTS = {
  'crypto-exchange': 'exchange of crypto-assets for money or for each other',
  custody: 'keeping crypto-assets or keys for others',
  payments: 'transfer of money or crypto-assets for others',
  'stablecoin-issuance': 'issue of a token that keeps the value of a currency',
  'token-offering': 'offer of tokens to the public',
  marketing: 'advertising crypto-assets or investments to the public',
  'personal-data': 'processing of personal data',
  sanctions: 'dealing with listed persons and addresses',
  'tax-reporting': 'reporting of customers’ transactions to tax authorities',
} as const;
export type Subject = keyof typeof SUBJECTS;

export interface Rule {
  id: string;
  jurisdiction: Jurisdiction;
  subjects: readonly Subject[];
  name: string;
  citation: string;
  /** The law's own site, or that of the authority that applies it, whether or not it was among the pages read. */
  url: string;
  /** The page of the same site that tells amendments, where `url` leads to the text as it was published, which never changes. */
  amendments?: string;
  /** Since when it applies; of guidance, when it was issued. YYYY, YYYY-MM or YYYY-MM-DD, as exact as it was read. */
  since: string;
  /** It stands, and applies from this day. */
  begins?: {
    /** YYYY-MM-DD */
    date: string;
    /** Something else may have made it apply earlier. Told in words. */
    orEarlier?: string;
  };
  trigger: string;
  obligations: readonly string[];
  /** What it calls a licence, registration or authorisation, where it wants one. */
  licence?: string;
  /** An amount from which it asks more. */
  threshold?: { amount: number; currency: 'USD' | 'EUR' | 'CAD' | 'SGD'; per: string };
  /** What must be known to say whether it applies. */
  asks: readonly string[];
  /** The pages that this entry was held against, and the day. What none of them says is not in the entry. */
  read: { on: string; at: readonly string[] };
}

/** The subjects of a business that exchanges, keeps or moves assets of others. */
export const ASSETS = ['crypto-exchange', 'custody', 'payments'] as const;

/** The page at which a change of the law behind a rule is seen. */
export function followedPage({ url, amendments }: Pick<Rule, 'url' | 'amendments'>): string {
  return amendments ?? url;
}
