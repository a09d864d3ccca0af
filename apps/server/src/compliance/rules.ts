/**
 * The rule base: published rules with their citation, where to read them and since when they hold. What this base does
 * not hold, it does not know. The texts cited have not been held against these entries word by word: read them first.
 */

/** The day on which the base was last written. Later changes of any rule are not in it. */
export const RULES_AS_OF = '2026-11-22';

export const JURISDICTIONS = {
  INTL: 'International',
  US: 'United States',
  'US-NY': 'New York',
  EU: 'European Union',
  UK: 'United Kingdom',
  SG: 'Singapore',
  HK: 'Hong Kong',
  JP: 'Japan',
  CH: 'Switzerland',
  CA: 'Canada',
  AU: 'Australia',
  AE: 'United Arab Emirates (Dubai)',
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
  url: string;
  /** When it began to apply (YYYY-MM-DD, or YYYY-MM where the day differs by part). */
  since: string;
  /** Until when it does not apply yet, by its own text; absent when it applies. */
  appliesFrom?: string;
  trigger: string;
  obligations: readonly string[];
  /** What it calls a licence, registration or authorisation, where it wants one. */
  licence?: string;
  /** An amount from which it asks more. */
  threshold?: { amount: number; currency: 'USD' | 'EUR' | 'CAD'; per: string };
  /** What must be known to say whether it applies. */
  asks: readonly string[];
}

const ASSETS = ['crypto-exchange', 'custody', 'payments'] as const;

export const RULES: readonly Rule[] = [
  {
    id: 'fatf-r15-r16',
    jurisdiction: 'INTL',
    subjects: [...ASSETS],
    name: 'FATF Recommendations 15 and 16 for virtual asset service providers',
    citation:
      'FATF Recommendations 15 and 16; Updated Guidance for a Risk-Based Approach to Virtual Assets and VASPs (October 2021)',
    url: 'https://www.fatf-gafi.org/en/publications/Fatfrecommendations/Guidance-rba-virtual-assets-2021.html',
    since: '2021-10-28',
    trigger:
      'Exchange, transfer or safekeeping of virtual assets as a business for others. A standard for states: it binds through their law.',
    obligations: [
      'States license or register such businesses and supervise them',
      'Originator and beneficiary information travels with transfers of virtual assets',
    ],
    asks: ['Which states’ law applies to the business?'],
  },
  {
    id: 'us-msb',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Registration as a money services business',
    citation: '31 CFR 1010.100(ff), 31 CFR 1022.380; FinCEN guidance FIN-2019-G001',
    url: 'https://www.ecfr.gov/current/title-31/subtitle-B/chapter-X/part-1022',
    since: '2019-05-09',
    trigger:
      'Accepting and transmitting currency, funds or value that substitutes for currency, such as convertible virtual currency, as a business in the United States in whole or substantial part.',
    obligations: ['Register with FinCEN within 180 days of beginning, and renew', 'Keep a list of agents'],
    licence: 'Registration as a money services business with FinCEN',
    asks: [
      'Does the business accept and transmit value for others, or only sell its own?',
      'Is it a bank, or registered with the SEC or the CFTC?',
    ],
  },
  {
    id: 'us-1960',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Unlicensed money transmitting business',
    citation: '18 U.S.C. § 1960',
    url: 'https://www.law.cornell.edu/uscode/text/18/1960',
    since: '1992-10-28',
    trigger:
      'Conducting a money transmitting business without a licence that a state requires, or without the federal registration.',
    obligations: ['Hold each state licence that the business needs before it begins there'],
    licence: 'Money transmitter licences of the states concerned',
    asks: ['In which states are the customers?'],
  },
  {
    id: 'us-msb-aml',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Anti-money-laundering programme of money services businesses',
    citation: '31 CFR 1022.210; suspicious activity reports: 31 CFR 1022.320',
    url: 'https://www.ecfr.gov/current/title-31/subtitle-B/chapter-X/part-1022',
    since: '2011-03-01',
    trigger: 'Being a money services business.',
    obligations: [
      'A written programme with policies, a compliance officer, training and independent review',
      'Report suspicious transactions of at least 2,000 USD',
    ],
    threshold: { amount: 2_000, currency: 'USD', per: 'suspicious transaction' },
    asks: [],
  },
  {
    id: 'us-travel-rule',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Recordkeeping and travel rule',
    citation: '31 CFR 1010.410(e) and (f)',
    url: 'https://www.ecfr.gov/current/title-31/subtitle-B/chapter-X/part-1010/subpart-D/section-1010.410',
    since: '1996-05-28',
    trigger: 'Transmittal of funds of 3,000 USD or more by a nonbank financial institution.',
    obligations: [
      'Keep name, address and account of who sends',
      'Pass them on with the order to the next institution',
    ],
    threshold: { amount: 3_000, currency: 'USD', per: 'transmittal' },
    asks: ['How large are single transfers?'],
  },
  {
    id: 'us-ofac',
    jurisdiction: 'US',
    subjects: ['sanctions', ...ASSETS, 'stablecoin-issuance'],
    name: 'OFAC: blocking, rejecting and reporting',
    citation: '31 CFR Part 501 (§§ 501.601, 501.603, 501.604)',
    url: 'https://www.ecfr.gov/current/title-31/subtitle-B/chapter-V/part-501',
    since: '1997-08-25',
    trigger: 'Every US person, and property that comes into the United States or the hands of a US person.',
    obligations: [
      'Block property in which a listed person has an interest, and report it within 10 business days',
      'Report rejected transactions within 10 business days',
      'Report blocked property every year by 30 September',
      'Keep records for 10 years (since 12 March 2025)',
    ],
    asks: ['Is a US person, or the US financial system, part of the operation?'],
  },
  {
    id: 'us-ofac-50',
    jurisdiction: 'US',
    subjects: ['sanctions'],
    name: 'OFAC’s 50 percent rule',
    citation:
      'OFAC, Revised Guidance on Entities Owned by Persons Whose Property and Interests in Property Are Blocked (13 August 2014)',
    url: 'https://ofac.treasury.gov/faqs/401',
    since: '2014-08-13',
    trigger: 'An entity that blocked persons own to 50 percent or more together, directly or indirectly.',
    obligations: ['Treat it as blocked although it stands in no list'],
    asks: ['Who owns the counterparty?'],
  },
  {
    id: 'us-ofac-virtual',
    jurisdiction: 'US',
    subjects: ['sanctions', ...ASSETS],
    name: 'Sanctions compliance guidance for the virtual currency industry',
    citation: 'OFAC, Sanctions Compliance Guidance for the Virtual Currency Industry (October 2021)',
    url: 'https://ofac.treasury.gov/recent-actions/20211015',
    since: '2021-10-15',
    trigger: 'Guidance for all who deal in virtual currency; no law of its own.',
    obligations: [
      'Management commitment, risk assessment, internal controls, testing and training',
      'Screen addresses and locations',
    ],
    asks: [],
  },
  {
    id: 'us-genius',
    jurisdiction: 'US',
    subjects: ['stablecoin-issuance'],
    name: 'GENIUS Act',
    citation: 'Guiding and Establishing National Innovation for U.S. Stablecoins Act, Public Law 119-27',
    url: 'https://www.congress.gov/bill/119th-congress/senate-bill/1582',
    since: '2025-07-18',
    appliesFrom: 'the earlier of 18 months after enactment (2027-01-18) and 120 days after final regulations',
    trigger: 'Issuing a payment stablecoin in the United States.',
    obligations: [
      'Be a permitted payment stablecoin issuer',
      'Hold reserves of at least one for one and publish their composition monthly',
      'Pay holders no interest for holding',
    ],
    licence: 'Permission as a payment stablecoin issuer, federal or of a qualified state',
    asks: ['Who issues the token, and from where?'],
  },
  {
    id: 'us-securities',
    jurisdiction: 'US',
    subjects: ['token-offering'],
    name: 'Registration of securities offerings',
    citation: 'Securities Act of 1933 § 5, 15 U.S.C. § 77e; SEC v. W. J. Howey Co., 328 U.S. 293 (1946)',
    url: 'https://www.law.cornell.edu/uscode/text/15/77e',
    since: '1933-05-27',
    trigger:
      'Offering or selling a security: among others a contract to invest money in a common enterprise with profits expected from the efforts of others.',
    obligations: ['Register the offering, or keep to an exemption'],
    licence: 'Registration statement in effect, or an exemption such as Regulation D',
    asks: ['What do buyers expect of the token, and from whose efforts?'],
  },
  {
    id: 'us-safeguards',
    jurisdiction: 'US',
    subjects: ['personal-data'],
    name: 'Safeguards Rule',
    citation: '16 CFR Part 314 (Gramm-Leach-Bliley Act)',
    url: 'https://www.ecfr.gov/current/title-16/chapter-I/subchapter-C/part-314',
    since: '2003-05-23',
    trigger:
      'Nonpublic personal information of customers of a financial institution under the FTC’s jurisdiction.',
    obligations: ['A written information security programme with a qualified person in charge'],
    asks: ['Which personal data is kept, and of whom?'],
  },
  {
    id: 'us-ny-bitlicense',
    jurisdiction: 'US-NY',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'BitLicense',
    citation: '23 NYCRR Part 200 (§ 200.3)',
    url: 'https://www.dfs.ny.gov/virtual_currency_businesses',
    since: '2015-06-24',
    trigger:
      'Virtual currency business activity that involves New York or a New Yorker: receiving for transmission, storing, exchanging, controlling or issuing it.',
    obligations: ['Capital, custody, cybersecurity, anti-money-laundering and reporting rules of Part 200'],
    licence:
      'Licence of the New York State Department of Financial Services, or a charter under its banking law',
    asks: ['Does anyone in New York use it?'],
  },
  {
    id: 'eu-mica-casp',
    jurisdiction: 'EU',
    subjects: [...ASSETS],
    name: 'MiCA: crypto-asset service providers',
    citation: 'Regulation (EU) 2023/1114, Title V (Article 59); transition: Article 143(3)',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1114/oj',
    since: '2024-12-30',
    trigger:
      'Providing crypto-asset services as a business in the Union: among others custody, exchange, a trading platform, transfer services.',
    obligations: [
      'Be authorised as a crypto-asset service provider with a registered office in a Member State',
      'Own funds, governance, safekeeping of clients’ assets, complaints and conflicts of interest',
      'Those of before 30 December 2024 could go on until 1 July 2026 at the latest',
    ],
    licence: 'Authorisation as a crypto-asset service provider (CASP)',
    asks: ['Is the service provided in the Union, or only at a client’s own initiative (Article 61)?'],
  },
  {
    id: 'eu-mica-stablecoins',
    jurisdiction: 'EU',
    subjects: ['stablecoin-issuance'],
    name: 'MiCA: asset-referenced tokens and e-money tokens',
    citation: 'Regulation (EU) 2023/1114, Titles III and IV (Articles 16 and 48)',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1114/oj',
    since: '2024-06-30',
    trigger:
      'Offering to the public in the Union, or seeking admission to trading of, a token that keeps a stable value by an official currency or other values.',
    obligations: [
      'A published white paper',
      'Redemption at par for e-money tokens',
      'Reserve of assets',
      'No interest to holders (Articles 40 and 50)',
    ],
    licence:
      'For e-money tokens: credit institution or electronic money institution; for asset-referenced tokens: authorisation under Article 16',
    asks: ['Does the token refer to one official currency or to other values?'],
  },
  {
    id: 'eu-mica-offer',
    jurisdiction: 'EU',
    subjects: ['token-offering', 'marketing'],
    name: 'MiCA: offers of other crypto-assets',
    citation: 'Regulation (EU) 2023/1114, Title II (Articles 4 to 8)',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1114/oj',
    since: '2024-12-30',
    trigger:
      'Offering crypto-assets other than asset-referenced and e-money tokens to the public in the Union, or seeking their admission to trading.',
    obligations: [
      'Be a legal person',
      'Draw up, notify and publish a white paper',
      'Marketing communications that are fair, clear and in line with the white paper (Article 7)',
    ],
    asks: ['Is the token a financial instrument, which is not in MiCA’s scope (Article 2(4))?'],
  },
  {
    id: 'eu-tfr',
    jurisdiction: 'EU',
    subjects: [...ASSETS],
    name: 'Transfer of Funds Regulation',
    citation: 'Regulation (EU) 2023/1113, Articles 14 and 16',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1113/oj',
    since: '2024-12-30',
    trigger:
      'A transfer of crypto-assets in which a service provider in the Union takes part, whatever its amount.',
    obligations: [
      'Information on originator and beneficiary goes with each transfer',
      'For transfers above 1,000 EUR to or from a self-hosted address: check that the customer owns or controls it',
    ],
    threshold: { amount: 1_000, currency: 'EUR', per: 'transfer with a self-hosted address' },
    asks: ['Are self-hosted addresses served?'],
  },
  {
    id: 'eu-amld',
    jurisdiction: 'EU',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'Anti-money-laundering directive',
    citation: 'Directive (EU) 2015/849 as amended by Directive (EU) 2018/843 and Regulation (EU) 2023/1113',
    url: 'https://eur-lex.europa.eu/eli/dir/2015/849/oj',
    since: '2020-01-10',
    trigger: 'Being an obliged entity, crypto-asset service providers among them.',
    obligations: [
      'Customer due diligence',
      'Report suspicions to the financial intelligence unit',
      'Keep records for five years',
    ],
    asks: ['In which Member State is the business established?'],
  },
  {
    id: 'eu-amlr',
    jurisdiction: 'EU',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'Anti-money-laundering regulation',
    citation: 'Regulation (EU) 2024/1624',
    url: 'https://eur-lex.europa.eu/eli/reg/2024/1624/oj',
    since: '2024-07-09',
    appliesFrom: '2027-07-10',
    trigger: 'Being an obliged entity, crypto-asset service providers among them.',
    obligations: [
      'One rulebook in place of the directive’s national laws',
      'No anonymous crypto-asset accounts (Article 79)',
    ],
    asks: [],
  },
  {
    id: 'eu-dora',
    jurisdiction: 'EU',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'Digital Operational Resilience Act',
    citation: 'Regulation (EU) 2022/2554',
    url: 'https://eur-lex.europa.eu/eli/reg/2022/2554/oj',
    since: '2025-01-17',
    trigger:
      'Being a financial entity in its scope, authorised crypto-asset service providers and issuers of asset-referenced tokens among them (Article 2).',
    obligations: ['ICT risk management, incident reporting, testing, and a register of ICT third parties'],
    asks: [],
  },
  {
    id: 'eu-gdpr',
    jurisdiction: 'EU',
    subjects: ['personal-data'],
    name: 'General Data Protection Regulation',
    citation: 'Regulation (EU) 2016/679',
    url: 'https://eur-lex.europa.eu/eli/reg/2016/679/oj',
    since: '2018-05-25',
    trigger:
      'Processing personal data by an establishment in the Union, or of persons in the Union to whom goods or services are offered (Article 3).',
    obligations: [
      'A lawful basis (Article 6)',
      'Rights of the persons concerned (Chapter III)',
      'Notify breaches to the authority within 72 hours (Article 33)',
    ],
    asks: ['Which personal data is processed, and on which basis?'],
  },
  {
    id: 'eu-psd2',
    jurisdiction: 'EU',
    subjects: ['payments'],
    name: 'Payment Services Directive',
    citation: 'Directive (EU) 2015/2366',
    url: 'https://eur-lex.europa.eu/eli/dir/2015/2366/oj',
    since: '2018-01-13',
    trigger: 'Providing payment services with funds, such as money transfers, as a business in the Union.',
    obligations: ['Safeguard users’ funds', 'Strong customer authentication (Article 97)'],
    licence: 'Authorisation as a payment institution',
    asks: ['Is money moved, or crypto-assets alone? E-money tokens are funds.'],
  },
  {
    id: 'eu-dac8',
    jurisdiction: 'EU',
    subjects: ['tax-reporting'],
    name: 'DAC8',
    citation: 'Council Directive (EU) 2023/2226 amending Directive 2011/16/EU',
    url: 'https://eur-lex.europa.eu/eli/dir/2023/2226/oj',
    since: '2026-01-01',
    trigger: 'Being a reporting crypto-asset service provider with users resident in the Union.',
    obligations: ['Collect users’ tax residence', 'Report their transactions every year'],
    asks: ['Where are the users resident for tax?'],
  },
  {
    id: 'uk-mlr',
    jurisdiction: 'UK',
    subjects: ['crypto-exchange', 'custody'],
    name: 'Registration of cryptoasset businesses',
    citation:
      'Money Laundering, Terrorist Financing and Transfer of Funds (Information on the Payer) Regulations 2017, SI 2017/692, regulations 14A and 54(1A)',
    url: 'https://www.legislation.gov.uk/uksi/2017/692/contents',
    since: '2020-01-10',
    trigger:
      'Acting as a cryptoasset exchange provider or custodian wallet provider by way of business in the United Kingdom.',
    obligations: [
      'Be registered with the FCA before beginning',
      'Customer due diligence and risk assessment',
    ],
    licence: 'Registration with the FCA',
    asks: ['Is the business carried on in the United Kingdom (regulation 9)?'],
  },
  {
    id: 'uk-travel-rule',
    jurisdiction: 'UK',
    subjects: [...ASSETS],
    name: 'Travel rule for cryptoasset transfers',
    citation: 'SI 2017/692, Part 7A, inserted by SI 2022/860',
    url: 'https://www.legislation.gov.uk/uksi/2022/860/contents/made',
    since: '2023-09-01',
    trigger: 'A transfer by a cryptoasset exchange provider or custodian wallet provider.',
    obligations: ['Information on originator and beneficiary goes with transfers between such businesses'],
    asks: [],
  },
  {
    id: 'uk-promotions',
    jurisdiction: 'UK',
    subjects: ['marketing', 'token-offering', 'crypto-exchange'],
    name: 'Financial promotions of qualifying cryptoassets',
    citation: 'Financial Services and Markets Act 2000 s. 21; SI 2023/612',
    url: 'https://www.legislation.gov.uk/uksi/2023/612/contents/made',
    since: '2023-10-08',
    trigger:
      'Inviting or inducing persons in the United Kingdom, in the course of business, to engage in investment activity with qualifying cryptoassets, from wherever it comes.',
    obligations: [
      'Communicate only as, or approved by, an authorised person, or as a cryptoasset business registered with the FCA, or under an exemption',
    ],
    asks: ['Can persons in the United Kingdom act on the promotion?'],
  },
  {
    id: 'uk-samla',
    jurisdiction: 'UK',
    subjects: ['sanctions', ...ASSETS],
    name: 'UK sanctions',
    citation: 'Sanctions and Anti-Money Laundering Act 2018 and the regulations under it',
    url: 'https://www.legislation.gov.uk/ukpga/2018/13/contents',
    since: '2018-05-23',
    trigger: 'Conduct in the United Kingdom, or of a UK person anywhere.',
    obligations: [
      'Do not deal with funds of, nor make funds available to, designated persons and those they own or control',
      'Since 28 January 2026 the UK Sanctions List alone names them; OFSI’s consolidated list is closed',
    ],
    asks: ['Is a UK person part of the operation?'],
  },
  {
    id: 'uk-gdpr',
    jurisdiction: 'UK',
    subjects: ['personal-data'],
    name: 'UK GDPR and Data Protection Act 2018',
    citation: 'Data Protection Act 2018 (c. 12); UK GDPR as defined in its s. 3(10)',
    url: 'https://www.legislation.gov.uk/ukpga/2018/12/contents',
    since: '2018-05-25',
    trigger:
      'Processing personal data by an establishment in the United Kingdom, or of persons there to whom goods or services are offered.',
    obligations: ['A lawful basis, rights of the persons concerned, notice of breaches'],
    asks: ['Which personal data is processed?'],
  },
  {
    id: 'sg-psa',
    jurisdiction: 'SG',
    subjects: [...ASSETS],
    name: 'Payment Services Act 2019',
    citation: 'Payment Services Act 2019 (Singapore), s. 5 and First Schedule',
    url: 'https://sso.agc.gov.sg/Act/PSA2019',
    since: '2020-01-28',
    trigger:
      'Carrying on a business of providing a payment service in Singapore, digital payment token services among them.',
    obligations: ['Hold a licence, or be exempt', 'Safeguard customers’ assets'],
    licence: 'Standard payment institution or major payment institution licence of MAS',
    asks: ['Is the business carried on in Singapore?'],
  },
  {
    id: 'sg-psn02',
    jurisdiction: 'SG',
    subjects: [...ASSETS],
    name: 'Notice PSN02: prevention of money laundering, digital payment token service',
    citation: 'MAS Notice PSN02',
    url: 'https://www.mas.gov.sg/regulation/notices/psn02-aml-cft-notice---digital-payment-token-service',
    since: '2020-01-28',
    trigger: 'Providing a digital payment token service under a licence.',
    obligations: [
      'Customer due diligence',
      'Originator and beneficiary information with value transfers',
      'Report suspicions',
    ],
    asks: [],
  },
  {
    id: 'sg-fsma',
    jurisdiction: 'SG',
    subjects: ['crypto-exchange', 'custody', 'payments'],
    name: 'Digital token service providers that serve customers abroad',
    citation: 'Financial Services and Markets Act 2022 (Singapore), Part 9',
    url: 'https://sso.agc.gov.sg/Act/FSMA2022',
    since: '2025-06-30',
    trigger:
      'Providing digital token services outside Singapore from a place of business in Singapore, or as a Singapore corporation.',
    obligations: ['Hold a licence, or cease'],
    licence: 'Digital token service provider licence of MAS',
    asks: ['Are customers outside Singapore served from Singapore?'],
  },
  {
    id: 'hk-amlo',
    jurisdiction: 'HK',
    subjects: ['crypto-exchange'],
    name: 'Licensing of virtual asset trading platforms',
    citation: 'Anti-Money Laundering and Counter-Terrorist Financing Ordinance, Cap. 615, Part 5B',
    url: 'https://www.elegislation.gov.hk/hk/cap615',
    since: '2023-06-01',
    trigger: 'Operating a virtual asset exchange in Hong Kong, or actively marketing one to its public.',
    obligations: ['Hold a licence of the Securities and Futures Commission'],
    licence: 'Licence as a provider of virtual asset services',
    asks: ['Is the public of Hong Kong addressed?'],
  },
  {
    id: 'hk-stablecoins',
    jurisdiction: 'HK',
    subjects: ['stablecoin-issuance'],
    name: 'Stablecoins Ordinance',
    citation: 'Stablecoins Ordinance, Cap. 656',
    url: 'https://www.elegislation.gov.hk/hk/cap656',
    since: '2025-08-01',
    trigger:
      'Issuing a fiat-referenced stablecoin in Hong Kong, or one that refers to the Hong Kong dollar anywhere.',
    obligations: [
      'Hold a licence of the Hong Kong Monetary Authority',
      'Reserve assets and redemption at par',
    ],
    licence: 'Licence as a stablecoin issuer',
    asks: ['Which currency does the token refer to?'],
  },
  {
    id: 'jp-psa',
    jurisdiction: 'JP',
    subjects: ['crypto-exchange', 'custody'],
    name: 'Registration of crypto-asset exchange service providers',
    citation: 'Payment Services Act (Japan), Act No. 59 of 2009, Article 63-2',
    url: 'https://laws.e-gov.go.jp/law/421AC0000000059',
    since: '2017-04-01',
    trigger: 'Purchase, sale, exchange or management of crypto-assets for others as a business.',
    obligations: ['Be registered', 'Keep users’ assets apart'],
    licence: 'Registration as a crypto-asset exchange service provider',
    asks: ['Are persons in Japan served?'],
  },
  {
    id: 'ch-amla',
    jurisdiction: 'CH',
    subjects: [...ASSETS],
    name: 'Anti-Money Laundering Act and travel rule',
    citation: 'Anti-Money Laundering Act (SR 955.0); FINMA Guidance 02/2019',
    url: 'https://www.fedlex.admin.ch/eli/cc/1998/892_892_892/en',
    since: '1998-04-01',
    trigger:
      'Being a financial intermediary in Switzerland, by professionally accepting or keeping assets of others or helping to transfer them.',
    obligations: [
      'Join a self-regulatory organisation or be licensed by FINMA',
      'Identify customers and beneficial owners',
      'Send originator and beneficiary information with transfers on a blockchain',
    ],
    licence: 'Membership of a self-regulatory organisation, or a licence of FINMA',
    asks: ['Is the activity carried on in or from Switzerland?'],
  },
  {
    id: 'ca-pcmltfa',
    jurisdiction: 'CA',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Registration as a money services business',
    citation:
      'Proceeds of Crime (Money Laundering) and Terrorist Financing Act, S.C. 2000, c. 17; Regulations SOR/2002-184',
    url: 'https://laws-lois.justice.gc.ca/eng/acts/P-24.501/',
    since: '2020-06-01',
    trigger:
      'Dealing in virtual currencies or transferring funds as a service in Canada, or from abroad for clients in Canada.',
    obligations: [
      'Register with FINTRAC',
      'Report receipts of virtual currency of 10,000 CAD or more',
      'Identify clients, keep records',
    ],
    licence: 'Registration with FINTRAC',
    threshold: { amount: 10_000, currency: 'CAD', per: 'receipt of virtual currency' },
    asks: ['Are clients in Canada served?'],
  },
  {
    id: 'au-amlctf',
    jurisdiction: 'AU',
    subjects: [...ASSETS],
    name: 'Registration of virtual asset service providers',
    citation:
      'Anti-Money Laundering and Counter-Terrorism Financing Act 2006 (Cth), as amended by the Anti-Money Laundering and Counter-Terrorism Financing Amendment Act 2024',
    url: 'https://www.legislation.gov.au/C2006A00169/latest/text',
    since: '2026-03-31',
    trigger: 'Providing a registrable virtual asset service with a geographical link to Australia.',
    obligations: [
      'Be registered with AUSTRAC',
      'Travel rule, customer due diligence, suspicious matter reports',
    ],
    licence: 'Registration with AUSTRAC',
    asks: ['Is there a link to Australia?'],
  },
  {
    id: 'ae-vara',
    jurisdiction: 'AE',
    subjects: [...ASSETS, 'token-offering', 'marketing'],
    name: 'Regulation of virtual assets in Dubai',
    citation: 'Law No. (4) of 2022 Regulating Virtual Assets in the Emirate of Dubai',
    url: 'https://www.vara.ae',
    since: '2022-03-11',
    trigger: 'Virtual asset activities in the Emirate of Dubai, free zones included but for the DIFC.',
    obligations: ['Hold a licence of the Virtual Assets Regulatory Authority before beginning'],
    licence: 'Licence of VARA for each activity',
    asks: ['Is the activity carried on in Dubai?'],
  },
];
