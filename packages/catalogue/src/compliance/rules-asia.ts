import { ASSETS, type Rule } from './rule.ts';

/** Rules of Singapore, Hong Kong, Japan, Australia and the United Arab Emirates. */
export const ASIAN_RULES: readonly Rule[] = [
  {
    id: 'sg-psa',
    jurisdiction: 'SG',
    subjects: [...ASSETS],
    name: 'Payment Services Act 2019',
    citation: 'Payment Services Act 2019 (No. 2 of 2019, Singapore)',
    url: 'https://sso.agc.gov.sg/Act/PSA2019',
    since: '2020-01-28',
    trigger:
      'Providing a payment service in Singapore, digital payment token services among them; custody of such tokens and their transfer since 4 April 2024.',
    obligations: [
      'Hold a licence, or be exempt',
      'Safeguard clients’ funds',
      'Base capital and conduct rules',
    ],
    licence: 'Standard payment institution or major payment institution licence of MAS',
    asks: ['Is the business carried on in Singapore?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://conventuslaw.com/report/payment-services-act-singapores-fintech-revolution',
        'https://www.wongpartnership.com/insights/detail/latest-updates-to-the-regulatory-regime-under-the-payment-services-act',
        'http://www.ronaldjjwong.com/2020/01/20/payment-services-act-commencing-january-2020-application-forms-notifications-exemptions-regulations-requirements-compliance/',
      ],
    },
  },
  {
    id: 'sg-psn02',
    jurisdiction: 'SG',
    subjects: [...ASSETS],
    name: 'Notice PSN02: prevention of money laundering, digital payment token service',
    citation: 'MAS Notice PSN02',
    url: 'https://www.mas.gov.sg/regulation/notices/psn02-aml-cft-notice---digital-payment-token-service',
    since: '2020-01-28',
    trigger: 'Providing a digital payment token service under a licence, or exempt from one.',
    obligations: [
      'Customer due diligence, monitoring and screening',
      'Names and accounts of originator and beneficiary go with each value transfer; above 1,500 SGD more of the originator, whose identity is verified first',
    ],
    threshold: { amount: 1_500, currency: 'SGD', per: 'value transfer' },
    asks: [],
    read: {
      on: '2026-11-22',
      at: [
        'https://kycrypto.io/resources/mas-psn02-practical-reading.html',
        'https://wtr.opusdatum.com/singapore/notice-psn01-prevention-of-money-laundering-and-countering-the-financing-of-terrorism-(specified-payment-services)',
        'https://www.merklescience.com/blog/regwatch-guidelines-to-notice-psn02-on-prevention-of-money-laundering-and-countering-the-financing-of-terrorism-aeu-digital-payment-token-services',
      ],
    },
  },
  {
    id: 'sg-fsma',
    jurisdiction: 'SG',
    subjects: [...ASSETS],
    name: 'Digital token service providers that serve customers abroad',
    citation: 'Financial Services and Markets Act 2022 (Singapore), Part 9',
    url: 'https://sso.agc.gov.sg/Act/FSMA2022',
    since: '2025-06-30',
    trigger:
      'Providing digital token services outside Singapore from a place of business in Singapore, or as a Singapore corporation from anywhere, unless licensed or exempt under its other acts.',
    obligations: ['Hold a licence, which MAS generally does not grant to such businesses, or cease'],
    licence: 'Digital token service provider licence of MAS',
    asks: ['Are customers outside Singapore served from Singapore?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.allenandgledhill.com/sg/perspectives/articles/30738/sgkh-regulatory-framework-for-digital-token-service-providers-under-financial-services-and-markets-act-2022-in-operation-on-30-june-2025',
        'https://fintechfetch.com/mas-clarifies-rules-for-crypto-service-providers-with-30-june-deadline-looming',
      ],
    },
  },
  {
    id: 'hk-amlo',
    jurisdiction: 'HK',
    subjects: ['crypto-exchange'],
    name: 'Licensing of virtual asset trading platforms',
    citation:
      'Anti-Money Laundering and Counter-Terrorist Financing Ordinance, Cap. 615, as amended by the Amendment Ordinance 2022',
    url: 'https://www.elegislation.gov.hk/hk/cap615',
    since: '2023-06-01',
    trigger:
      'Operating a centralised virtual asset exchange in Hong Kong, or actively marketing one to its investors; for tokens that are no securities.',
    obligations: [
      'Hold a licence of the Securities and Futures Commission; for tokens that are securities, licences under the Securities and Futures Ordinance',
    ],
    licence: 'Licence of the Securities and Futures Commission as a virtual asset service provider',
    asks: ['Is the public of Hong Kong addressed?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.hongkong-fintech.hk/en/insights/news/news-2023/circular-on-transitional-arrangements-of-the-new-licensing-regime-for-virtual-asset-trading-platforms/index.html',
        'https://charltonslaw.com/sfc-circular-on-implementing-new-licensing-regime-for-virtual-asset-trading-platform-operators',
      ],
    },
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
      'Issuing a fiat-referenced stablecoin in Hong Kong, or one that refers to the Hong Kong dollar outside it, in the course of business.',
    obligations: [
      'Hold a licence of the Hong Kong Monetary Authority',
      'Paid-up capital of 25,000,000 HKD',
      'Full backing by liquid reserve assets kept apart, and redemption at par',
    ],
    licence: 'Licence as a stablecoin issuer',
    asks: ['Which currency does the token refer to?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.morganlewis.com/pubs/2025/06/hong-kongs-stablecoins-ordinance-to-take-effect-august-1-an-overview-of-the-regulatory-framework',
        'https://www.vcclawservices.com/news-insight/publications/233',
        'https://www.tekedia.com/hong-kong-releases-stablecoins-ordinance-establishing-a-licensing-regime-for-fiat-referenced-stablecoin',
      ],
    },
  },
  {
    id: 'jp-psa',
    jurisdiction: 'JP',
    subjects: ['crypto-exchange', 'custody'],
    name: 'Registration of crypto-asset exchange service providers',
    citation: 'Payment Services Act (Japan), as amended in 2016 and 2019',
    url: 'https://laws.e-gov.go.jp/law/421AC0000000059',
    since: '2017-04-01',
    trigger:
      'Buying, selling, exchanging or arranging crypto-assets for others as a business; since 1 May 2020 managing them for others too.',
    obligations: [
      'Be registered with the Financial Services Agency',
      'Keep users’ assets apart from one’s own',
    ],
    licence: 'Registration as a crypto-asset exchange service provider',
    asks: ['Are persons in Japan served?', 'Has the law changed since 2020? Later amendments were not read.'],
    read: {
      on: '2026-11-22',
      at: [
        'https://mofo.com/resources/insights/200423-japanese-cryptocurrency-update',
        'http://mondaq.com/unitedstates/x/800266/fin+tech/FSA+Proposes+Bill+To+Amend+Japanese+Laws+Regulating+CryptocurrencyRelated+Businesses?type=related',
        'https://blog.geekhash.jp/regulations-on-exchange-service-providers',
      ],
    },
  },
  {
    id: 'au-amlctf',
    jurisdiction: 'AU',
    subjects: [...ASSETS],
    name: 'Registration of virtual asset service providers',
    citation:
      'Anti-Money Laundering and Counter-Terrorism Financing Act 2006 (Cth) (s. 66A), as amended by the Amendment Act 2024',
    url: 'https://www.legislation.gov.au/C2006A00169/latest/text',
    since: '2026-03-31',
    trigger:
      'Exchanging virtual assets for money or each other, transferring them for a customer, keeping them, or services around their offer and sale.',
    obligations: [
      'Be registered with AUSTRAC before providing them; otherwise criminal penalties',
      'Collect, verify and pass on information on payer and payee with transfers (s. 66A)',
      'An anti-money-laundering programme',
    ],
    licence: 'Registration with AUSTRAC',
    asks: ['Is there a link to Australia?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://hwlebsworth.com.au/crypto-under-the-new-australian-aml-ctf-regime-2/',
        'https://arctic-intelligence.com/insights/aml-ctf-amendment-act-2024-for-virtual-asset-service-providers',
        'https://www.bitsofblocks.io/post/are-you-vasp-ready-understanding-your-new-aml-ctf-obligations',
      ],
    },
  },
  {
    id: 'ae-vara',
    jurisdiction: 'AE',
    subjects: [...ASSETS, 'token-offering', 'marketing'],
    name: 'Regulation of virtual assets in Dubai',
    citation: 'Law No. (4) of 2022 Regulating Virtual Assets in the Emirate of Dubai',
    url: 'https://dlp.dubai.gov.ae/Legislation%20Reference/2022/Law%20No.%20(4)%20of%202022%20Regulating%20Virtual%20Assets.html',
    since: '2022-03-11',
    trigger:
      'Virtual asset activities in the Emirate of Dubai, its free zones included and the DIFC excluded: advice, broker-dealing, custody, exchange, lending, management, transfer, issuance; and marketing of them.',
    obligations: [
      'Be licensed by the Virtual Assets Regulatory Authority for the activity and keep to its rulebooks',
      'Keep to the regulation of marketing, advertising and promotions (Administrative Order No. 01 of 2022)',
    ],
    licence: 'Licence of VARA for the activity',
    asks: ['Is the activity carried on in Dubai, outside the DIFC?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://dlp.dubai.gov.ae/Legislation%20Reference/2022/Law%20No.%20(4)%20of%202022%20Regulating%20Virtual%20Assets.html',
        'https://sol-intl.com/2023/06/01/dubai-regulation-of-virtual-assets/',
        'https://trowers.com/insights/2024/june/regulation-of-virtual-assets-in-dubai',
        'https://app.reallaw.ai/en/legal-table/doc/dubai-administrative-order-no-01-of-2022-relating-to-regulation-of-marketing-481',
      ],
    },
  },
  {
    id: 'ae-central-bank',
    jurisdiction: 'AE',
    subjects: ['payments', 'stablecoin-issuance', 'marketing'],
    name: 'Payment services with virtual assets, licensed by the Central Bank',
    citation:
      'Federal Decree-Law No. (6) of 2025 Regarding the Central Bank, Regulation of Financial Institutions and Activities, and Insurance Business (Articles 61, 62, 184 and 187)',
    url: 'https://rulebook.centralbank.ae/en',
    since: '2025-09-16',
    trigger:
      'Providing payment services with virtual assets, stored value, retail payments or digital money, or offering, issuing or facilitating them by whatever technology; arranging, promoting or marketing them too. Outside the financial free zones, and not where virtual assets serve investment or trading.',
    obligations: [
      'Hold a licence of the Central Bank; who was active before had one year to comply (Article 184)',
    ],
    licence: 'Licence of the Central Bank of the UAE for the activity',
    asks: [
      'Are virtual assets used to pay, or to invest?',
      'Is the business in a financial free zone, such as the DIFC or ADGM?',
    ],
    read: {
      on: '2026-11-29',
      at: [
        'https://neoslegal.co/uae-central-bank-defi-regulations',
        'https://www.cryptocompliance.ai/post/crypto-alert-inside-federal-decree-law-no-6-of-2025-cbuae-takes-charge-of-virtual-asset-payments',
        'https://www.glaco.com/blog/new-cbuae-law-no-6-of-2025-a-consolidated-overhaul-of-the-uae-financial-regulatory',
        'https://uae.shushin.io/finance-capital-markets/Federal-Decree-Law-6-2025',
      ],
    },
  },
];
