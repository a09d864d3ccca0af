import { ASSETS, type Rule } from './rule.ts';

/** Rules of the United States, New York and Canada. */
export const AMERICAN_RULES: readonly Rule[] = [
  {
    id: 'us-msb',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Registration as a money services business',
    citation: '31 CFR 1022.380; 31 CFR 1010.100(ff); FinCEN guidance FIN-2019-G001',
    url: 'https://fincen.gov/money-services-business-msb-registration',
    since: '2001-12-31',
    trigger:
      'Being a money services business in the United States. FinCEN counts as money transmitters those who accept and transmit currency, funds or value that substitutes for currency, such as convertible virtual currency, by the facts of what they do.',
    obligations: [
      'Register with FinCEN within 180 days of being established, whether or not a state licenses the business too',
      'Renew the registration every two years',
      'Keep a list of agents',
      'From abroad: name a resident agent for service of process',
    ],
    licence: 'Registration as a money services business with FinCEN',
    asks: [
      'Does the business accept and transmit value for others, or only use its own?',
      'Is it only an agent of another money services business, which need not register?',
    ],
    read: {
      on: '2026-11-22',
      at: [
        'https://fincen.gov/money-services-business-msb-registration',
        'https://govinfo.gov/content/pkg/FR-1999-08-20/html/99-21667.htm',
        'https://quickcen.sanctions.org/QuickCEN/research/31-cfr-1022.380-registration-of-money-services-businesses.',
        'https://cryptoslate.com/crypto-laws/fincen-2019-convertible-virtual-currency-guidance-usa/',
      ],
    },
  },
  {
    id: 'us-1960',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Unlicensed money transmitting business',
    citation: '18 U.S.C. § 1960',
    url: 'https://uscode.house.gov/view.xhtml?req=granuleid:USC-prelim-title18-section1960&num=0&edition=prelim',
    since: '1992-10-28',
    trigger:
      'Knowingly conducting a money transmitting business without a licence whose lack a state punishes, or without the federal registration, or with funds known to come from crime. A fine, up to five years of imprisonment, or both.',
    obligations: ['Hold each state licence that the business needs, and the federal registration'],
    licence: 'Money transmitter licences of the states concerned',
    asks: ['In which states are the customers?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://law.justia.com/codes/us/2015/title-18/part-i/chapter-95/sec.-1960/index.html',
        'http://uscode.elaws.us/law/title18.parti.chapter95.section1960',
      ],
    },
  },
  {
    id: 'us-msb-aml',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Anti-money-laundering programme of money services businesses',
    citation: '31 CFR 1022.210; suspicious activity reports: 31 CFR 1022.320',
    url: 'https://www.ecfr.gov/current/title-31/subtitle-B/chapter-X/part-1022/subpart-B/section-1022.210',
    since: '2002-07-24',
    trigger: 'Being a money services business. A new one has 90 days from when it is established.',
    obligations: [
      'A written programme fit for the risks, with policies, a person responsible for compliance, training and independent review',
      'Report transactions of at least 2,000 USD that it knows, suspects or has reason to suspect of a violation of law',
    ],
    threshold: { amount: 2_000, currency: 'USD', per: 'suspicious transaction' },
    asks: [],
    read: {
      on: '2026-11-22',
      at: [
        'https://reggi.ai/posts/aml/31-cfr-1022-210_18f4',
        'https://reggi.ai/posts/aml/31-cfr-1022-320_1983',
      ],
    },
  },
  {
    id: 'us-travel-rule',
    jurisdiction: 'US',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Travel rule',
    citation: 'FinCEN, Funds “Travel” Regulations: Questions & Answers, FIN-2010-G004',
    url: 'https://www.fincen.gov/resources/statutes-regulations/guidance/funds-travel-regulations-questions-answers',
    since: '2010-11-09',
    trigger:
      'A transmittal of funds of 3,000 USD or more by a financial institution, whether or not currency is involved. A proposal of October 2020 to lower the amount to 250 USD across borders was found, and no final rule.',
    obligations: [
      'Send name, address and account of who sends, the amount, the date and the recipient’s institution with the order',
      'Pass on what came with an order to the next institution',
    ],
    threshold: { amount: 3_000, currency: 'USD', per: 'transmittal' },
    asks: ['How large are single transfers?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.fincen.gov/resources/statutes-regulations/guidance/funds-travel-regulations-questions-answers',
        'http://print.casetext.com/federal-register/threshold-for-the-requirement-to-collect-retain-and-transmit-information-on-funds-transfers-and-transmittals-of-funds-that-begin-or-end-outside-the-united-states-and-clarification-of-the-requirement-to-collect-retain-and-transmit-information-on-trans',
      ],
    },
  },
  {
    id: 'us-ofac',
    jurisdiction: 'US',
    subjects: ['sanctions', ...ASSETS, 'stablecoin-issuance'],
    name: 'OFAC: blocking, rejecting and reporting',
    citation: '31 CFR Part 501 (§§ 501.601, 501.603, 501.604)',
    url: 'https://www.ecfr.gov/current/title-31/subtitle-B/chapter-V/part-501',
    since: '1997-08-25',
    trigger:
      'Every US person, and every person subject to US jurisdiction, who holds blocked property or meets a transaction that must be rejected.',
    obligations: [
      'Report blocked property within 10 business days of when it becomes blocked',
      'Report rejected transactions within 10 business days',
      'Report what was held blocked on 30 June by 30 September of each year',
      'Keep records for 10 years (since 12 March 2025; before, 5)',
    ],
    asks: ['Is a US person, or the US financial system, part of the operation?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.law.cornell.edu/cfr/text/31/501.603',
        'https://dwt.com/blogs/financial-services-law-advisor/2024/08/treasury-ofac-blocked-property-reports-due',
        'https://ofac.treasury.gov/recent-actions/20180702',
        'https://regulations.justia.com/regulations/fedreg/2025/03/21/2025-04864.html',
      ],
    },
  },
  {
    id: 'us-ofac-50',
    jurisdiction: 'US',
    subjects: ['sanctions'],
    name: 'OFAC’s 50 percent rule',
    citation:
      'OFAC, Revised Guidance on Entities Owned by Persons Whose Property and Interests in Property Are Blocked (13 August 2014)',
    url: 'https://ofac.treasury.gov/faqs/topic/1521',
    since: '2014-08-13',
    trigger:
      'An entity that one or more blocked persons own to 50 percent or more together, directly or indirectly. It speaks of ownership, and not of control.',
    obligations: ['Treat it as blocked although it stands in no list'],
    asks: ['Who owns the counterparty?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.lexology.com/library/detail.aspx?g=c1722ac2-8e5c-474c-815a-69d91ed43328',
        'https://www.lexology.com/library/detail.aspx?g=5cce89bf-e293-42d7-9d6f-45f259120842',
      ],
    },
  },
  {
    id: 'us-ofac-virtual',
    jurisdiction: 'US',
    subjects: ['sanctions', ...ASSETS],
    name: 'Sanctions compliance guidance for the virtual currency industry',
    citation: 'OFAC, Sanctions Compliance Guidance for the Virtual Currency Industry (October 2021)',
    url: 'https://ofac.treasury.gov/recent-actions/20211015',
    since: '2021-10-15',
    trigger:
      'Guidance, no law of its own: for technology companies, exchanges, administrators, miners, wallet providers and users of virtual currency.',
    obligations: [
      'Management commitment, risk assessment, internal controls, testing and auditing, and training, fit for the risks of the business',
    ],
    asks: [],
    read: {
      on: '2026-11-22',
      at: [
        'https://alston.com/en/insights/publications/2021/10/how-can-companies-use-ofacs-new-guidance',
        'https://www.alixpartners.com/insights/102h8s8/virtual-currency-industry-is-called-to-build-a-risk-based-sanctions-compliance-pr/',
      ],
    },
  },
  {
    id: 'us-genius',
    jurisdiction: 'US',
    subjects: ['stablecoin-issuance'],
    name: 'GENIUS Act',
    citation: 'Guiding and Establishing National Innovation for U.S. Stablecoins Act, Public Law 119-27',
    url: 'https://www.congress.gov/119/plaws/publ27/PLAW-119publ27.htm',
    since: '2025-07-18',
    begins: {
      date: '2027-01-18',
      orEarlier:
        '120 days after the primary federal regulators issue final regulations, if that is earlier; in June 2026 they were told to be pending',
    },
    trigger:
      'Issuing a payment stablecoin in the United States. From 18 July 2028 on, providers may offer or sell there those of permitted issuers alone.',
    obligations: [
      'Be a permitted payment stablecoin issuer',
      'Hold reserves of one for one, and publish what they consist of every month',
      'Pay holders no interest',
    ],
    licence: 'Permission as a payment stablecoin issuer, federal or of a qualified state',
    asks: ['Who issues the token, and from where?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.congress.gov/119/plaws/publ27/PLAW-119publ27.htm',
        'https://www.gtlaw-overheardontheblockchain.com/2025/07/22/genius-act-enacted-establishing-a-regulatory-framework-for-payment-stablecoins-issued-or-sold-in-the-united-states/',
        'https://incrypthos.com/regulation/congress-passes-landmark-stablecoin-bill-mandating-reserves-and-issuer-licensing',
        'https://eco.com/support/en/articles/15606775-genius-act-1-year-implementation-tracker-where-things-actually-stand',
      ],
    },
  },
  {
    id: 'us-securities',
    jurisdiction: 'US',
    subjects: ['token-offering'],
    name: 'Registration of securities offerings',
    citation: 'Securities Act of 1933; SEC v. W. J. Howey Co., 328 U.S. 293 (1946)',
    url: 'https://www.loc.gov/item/usrep328293/',
    since: '1946',
    trigger:
      'Offering or selling a security: among others an investment of money in a common enterprise with profits expected from the efforts of others.',
    obligations: ['Have a registration statement in effect, or keep to an exemption'],
    licence: 'Registration statement in effect, or an exemption',
    asks: [
      'What do buyers expect of the token, and from whose efforts?',
      'What has the SEC said of tokens since? Its later positions were not read.',
    ],
    read: {
      on: '2026-11-22',
      at: [
        'https://brownulr.org/blogposts/digital-assetsinvestment-contracts-or-howey-test-unicorns-part-2-of-6',
        'https://montague.law/blog/intersection-digital-assets-securities-laws/',
      ],
    },
  },
  {
    id: 'us-safeguards',
    jurisdiction: 'US',
    subjects: ['personal-data'],
    name: 'Safeguards Rule',
    citation: '16 CFR Part 314 (Gramm-Leach-Bliley Act)',
    url: 'https://www.ecfr.gov/current/title-16/chapter-I/subchapter-C/part-314',
    since: '2002',
    trigger: 'Holding customer information as a financial institution that answers to the FTC.',
    obligations: [
      'Administrative, technical and physical safeguards for customer information',
      'Report to the FTC when unencrypted information of 500 consumers or more was acquired without authorization (since 13 May 2024)',
    ],
    asks: ['Which personal data is kept, and of whom?'],
    read: {
      on: '2026-11-22',
      at: ['https://www.govinfo.gov/content/pkg/FR-2023-11-13/html/2023-24412.htm'],
    },
  },
  {
    id: 'us-ny-bitlicense',
    jurisdiction: 'US-NY',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'BitLicense',
    citation: '23 NYCRR Part 200 (§§ 200.2(q), 200.3)',
    url: 'https://dfs.ny.gov/apps_and_licensing/virtual_currency_businesses/regulation_history',
    since: '2015-06',
    trigger:
      'Virtual currency business activity that involves New York or a New York resident: transmitting, holding for others, buying and selling or exchanging as a customer business, controlling, administering or issuing it.',
    obligations: [
      'Capital (§ 200.8), custody (§ 200.9), reports (§ 200.14), anti-money-laundering (§ 200.15) and cyber security (§ 200.16)',
    ],
    licence:
      'Licence of the New York State Department of Financial Services, or a limited purpose trust charter under its banking law',
    asks: ['Does anyone in New York use it?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://dfs.ny.gov/apps_and_licensing/virtual_currency_businesses/regulation_history',
        'http://feedreader.com/observe/qntra.net/2015%2F06%2Fnydfs-announces-final-bitlicense-rules%2F%3F+itemId=2621817250?from=56460927',
      ],
    },
  },
  {
    id: 'us-ca-dfal',
    jurisdiction: 'US-CA',
    subjects: [...ASSETS],
    name: 'Digital Financial Assets Law',
    citation:
      'California Financial Code, Division 1.25 (Assembly Bill 39 and Senate Bill 401 of 2023, AB 1934 of 2024)',
    url: 'https://dfpi.ca.gov/regulated-industries/digital-financial-assets/',
    since: '2026-07-01',
    trigger:
      'Digital financial asset business activity with residents of California or for them: exchanging, transferring or storing a crypto-asset.',
    obligations: [
      'Hold a licence, or have applied for one, since 1 July 2026; without either, no such activity',
    ],
    licence: 'Licence of the California Department of Financial Protection and Innovation (DFPI)',
    asks: ['Does anyone in California use it?'],
    read: {
      on: '2026-11-28',
      at: [
        'https://dfpi.ca.gov/regulated-industries/digital-financial-assets/',
        'https://cornerstonelicensing.com/answers/what-is-the-california-dfal-license',
        'https://www.brico.ai/post/california-dfal-licensing-guide-2026',
      ],
    },
  },
  {
    id: 'us-la-vcba',
    jurisdiction: 'US-LA',
    subjects: [...ASSETS],
    name: 'Virtual Currency Businesses Act',
    citation: 'Louisiana Revised Statutes 6:1381 and following (Acts 2020, No. 341; Acts 2023, No. 331)',
    url: 'https://www.legis.la.gov/legis/Law.aspx?d=1187465',
    since: '2020',
    trigger: 'Virtual currency business activity with a resident of Louisiana or for one, from wherever.',
    obligations: [
      'Be licensed, or exempt under section 1383 (section 1384)',
      'A surety bond (section 1386), tangible net worth (section 1386.1), and as much of each virtual currency as is held for residents (section 1386.2)',
    ],
    licence:
      'Licence of the Louisiana Office of Financial Institutions, by the Nationwide Multistate Licensing System',
    asks: ['Does anyone in Louisiana use it?'],
    read: {
      on: '2026-11-28',
      at: [
        'https://www.legis.la.gov/legis/Law.aspx?d=1187463',
        'https://theusufruct.com/rs/title-6/section-1384.json',
        'https://www.lawserver.com/law/state/louisiana/la-laws/louisiana_revised_statutes_title_6_chapter_21',
      ],
    },
  },
  {
    id: 'us-il-dacpa',
    jurisdiction: 'US-IL',
    subjects: [...ASSETS],
    name: 'Digital Assets and Consumer Protection Act',
    citation: '205 ILCS 731 (Public Act 104-428 of 2025)',
    url: 'https://lrb.ilga.gov/legislation/ilcs/ilcs5.asp?ActID=4632&ChapterID=20',
    since: '2025-08-18',
    trigger:
      'Digital asset business activity with residents of Illinois or for them, from wherever: exchanging, transferring or storing a digital asset, or administering one. Left out are exchanges and transfers from peer to peer, also by decentralised exchanges, software, and the issue of a non-fungible token.',
    obligations: [
      'Be registered with the Illinois Department of Financial and Professional Regulation',
      'Disclosures before business with a resident (section 5-5), and custody that protects customers’ assets',
    ],
    licence: 'Registration with the Illinois Department of Financial and Professional Regulation (IDFPR)',
    asks: [
      'Does anyone in Illinois use it?',
      'From when is registration asked for? The Act is in force, and that day was not read; an account has customer protections apply by 1 January 2027.',
    ],
    read: {
      on: '2026-11-29',
      at: [
        'https://www.ilga.gov/legislation/ILCS/details?MajorTopic=REGULATION&Chapter=FINANCIAL%20REGULATION&ActName=Digital%20Assets%20and%20Consumer%20Protection%20Act.&ActID=4632&ChapterID=20&ChapAct=205+ILCS+731%2F&SeqStart=100000&SeqEnd=700000',
        'https://www.ilga.gov/Legislation/BillStatus?GAID=18&DocNum=1797&DocTypeID=SB&LegId=160946&SessionID=114&Print=1',
        'https://infobytes.orrick.com/2025-08-29/illinois-enacts-two-new-consumer-protection-laws-regulating-digital-assets',
        'https://www.mayerbrown.com/es/insights/publications/2025/09/illinois-adopts-regulatory-regime-for-digital-assets',
        'https://incrypthos.com/regulation/illinois-enacts-dual-digital-asset-laws-expanding-state-regulatory-oversight',
      ],
    },
  },
  {
    id: 'ca-pcmltfa',
    jurisdiction: 'CA',
    subjects: ['crypto-exchange', 'payments'],
    name: 'Registration as a money services business',
    citation:
      'Proceeds of Crime (Money Laundering) and Terrorist Financing Act; Regulations SOR/2002-184, as amended by SOR/2019-240',
    url: 'https://laws-lois.justice.gc.ca/eng/regulations/SOR-2002-184/',
    since: '2020-06-01',
    trigger:
      'Exchanging or transferring virtual currency as a business, from Canada or from abroad for clients in Canada; transferring funds.',
    obligations: [
      'Register with FINTRAC',
      'Report receipts of virtual currency of 10,000 CAD or more within five working days (since 1 June 2021; receipts of 24 hours count together)',
      'A compliance programme, suspicious transaction reports, records and knowing the clients',
    ],
    licence: 'Registration with FINTRAC',
    threshold: { amount: 10_000, currency: 'CAD', per: 'receipt of virtual currency' },
    asks: ['Are clients in Canada served?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://fintrac-canafe.canada.ca/notices-avis/2021-09-27-eng',
        'https://cryptoslate.com/crypto-laws/fintrac-large-virtual-currency-transaction-reporting-regime/',
        'https://www.fasken.com/en/knowledge/2019/11/virtual-currency-dealers-can-voluntarily-register-with-fintrac-ahead-of-mandatory-registration',
        'https://www.goodmans.ca/insights/article/Virtual_Currency_Dealers_Must_Register_as_MSBs_by_June_1__2020__Important_Changes_to_Canada_s_Anti_Money_Laundering_Regime_',
      ],
    },
  },
];
