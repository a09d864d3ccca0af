import { ASSETS, type Rule } from './rule.ts';

/** Rules of the European Union, the United Kingdom and Switzerland. */
export const EUROPEAN_RULES: readonly Rule[] = [
  {
    id: 'eu-mica-casp',
    jurisdiction: 'EU',
    subjects: [...ASSETS],
    name: 'MiCA: crypto-asset service providers',
    citation: 'Regulation (EU) 2023/1114, Title V (Articles 59, 62 and 63); transition: Article 143(3)',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1114/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023R1114',
    since: '2024-12-30',
    trigger:
      'Providing crypto-asset services in the Union: among others custody, a trading platform, exchange for funds or other crypto-assets, execution of orders, transfer services.',
    obligations: [
      'Be authorised as a crypto-asset service provider, or be a financial entity that Article 59 names',
      'Registered office in a Member State where part of the services is provided, effective management in the Union, one director resident there',
      'Prudential safeguards (Article 67), governance and internal controls',
      'Those of before 30 December 2024 could go on until 1 July 2026 at the latest',
    ],
    licence: 'Authorisation as a crypto-asset service provider (CASP)',
    asks: ['Is the service provided in the Union?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.springlex.eu/en/packages/mica/mica-regulation/article-59/',
        'https://www.springlex.eu/en/packages/mica/mica-regulation/article-62/',
        'https://casp.eu/pages/authorisation',
        'https://www.mica.wtf/mica/title-ix-transitional-and-final-provisions-art.-140-149/article-149',
        'https://www.agplaw.com/micas-transition-ends-on-1-july-2026-is-your-crypto-business-authorised-to-continue/',
      ],
    },
  },
  {
    id: 'eu-mica-stablecoins',
    jurisdiction: 'EU',
    subjects: ['stablecoin-issuance'],
    name: 'MiCA: asset-referenced tokens and e-money tokens',
    citation: 'Regulation (EU) 2023/1114, Titles III and IV (Articles 29, 48 and 50)',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1114/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023R1114',
    since: '2024-06-30',
    trigger:
      'Offering to the public in the Union, or seeking admission to trading of, a token that is to keep a stable value: by one official currency (e-money token), or by other values (asset-referenced token).',
    obligations: [
      'A crypto-asset white paper, notified to the authority and published',
      'No interest to holders of e-money tokens, nor anything else for how long they hold (Article 50)',
      'Marketing communications that are fair, clear and not misleading (Article 29 for asset-referenced tokens)',
    ],
    licence:
      'For e-money tokens: authorisation as a credit institution or electronic money institution (Article 48); for asset-referenced tokens: authorisation or licensing under Title III',
    asks: ['Does the token refer to one official currency or to other values?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.mica.wtf/mica/title-iv-e-money-tokens-art.-48-48/chapter-1/article-50',
        'https://prokopievlaw.com/post/e-money-tokens-under-mica-a-new-horizon-in-digital-finance',
        'https://www.springlex.eu/en/packages/mica/mica-regulation/article-29/',
        'https://www.fma.gv.at/en/cross-sectoral-topics/markets-in-crypto-assets-regulation-micar/preventing-unintentional-offers-to-the-public/',
        'https://www.mica.wtf/mica/title-ix-transitional-and-final-provisions-art.-140-149/article-149',
      ],
    },
  },
  {
    id: 'eu-mica-offer',
    jurisdiction: 'EU',
    subjects: ['token-offering', 'marketing'],
    name: 'MiCA: offers of other crypto-assets',
    citation: 'Regulation (EU) 2023/1114, Title II (Articles 4 to 9)',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1114/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023R1114',
    since: '2024-12-30',
    trigger:
      'Offering crypto-assets other than asset-referenced and e-money tokens to the public in the Union, or seeking their admission to trading.',
    obligations: [
      'Be a legal person',
      'Draw up, notify and publish a white paper; not for offers to fewer than 150 persons a Member State, of at most 1,000,000 EUR in 12 months, or to qualified investors alone',
      'Marketing communications that are fair, clear, not misleading, in line with the white paper, and with the statement that Article 7 prescribes',
    ],
    asks: [
      'Is the token offered for free, or otherwise outside Title II (Article 4(3))?',
      'Is it another thing in law, such as a financial instrument?',
    ],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.springlex.eu/en/packages/mica/mica-regulation/article-4/',
        'https://judict.eu/en/hla/32023R1114-X/article-7',
        'https://www.mica.wtf/mica/title-ix-transitional-and-final-provisions-art.-140-149/article-149',
      ],
    },
  },
  {
    id: 'eu-tfr',
    jurisdiction: 'EU',
    subjects: [...ASSETS],
    name: 'Transfer of Funds Regulation',
    citation: 'Regulation (EU) 2023/1113, Articles 14 and 16',
    url: 'https://eur-lex.europa.eu/eli/reg/2023/1113/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023R1113',
    since: '2024-12-30',
    trigger:
      'A transfer of crypto-assets in which a service provider takes part for originator or beneficiary, whatever its amount.',
    obligations: [
      'Name, address or account of originator and beneficiary go with each transfer (Article 14)',
      'For transfers above 1,000 EUR to or from a self-hosted address: assess whether the customer owns or controls it (Articles 14(5) and 16(2))',
    ],
    threshold: { amount: 1_000, currency: 'EUR', per: 'transfer with a self-hosted address' },
    asks: ['Are self-hosted addresses served?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.mica.wtf/tofr/transfer-of-funds-regulation/chapter-iii-casp-obligations/article-14-information-accompanying-transfers-of-crypto-assets',
        'https://www.springlex.eu/en/packages/aml/tfr-regulation/article-14/',
        'https://www.springlex.eu/en/packages/aml/tfr-regulation/article-16/',
        'https://www.horizon-scanner.com/landing/en/blog/tfr-self-hosted-wallets-art-14-5',
        'https://finconduit.com/resources/amlr-amla-casp-2027.md',
      ],
    },
  },
  {
    id: 'eu-amlr',
    jurisdiction: 'EU',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'Anti-money-laundering regulation',
    citation: 'Regulation (EU) 2024/1624 (Articles 40 and 79)',
    url: 'https://eur-lex.europa.eu/eli/reg/2024/1624/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32024R1624',
    since: '2024-07-09',
    begins: { date: '2027-07-10' },
    trigger:
      'Being an obliged entity, crypto-asset service providers among them. Until it applies, the Member States’ own laws under the anti-money-laundering directives do.',
    obligations: [
      'One rulebook for customer due diligence, beneficial ownership, internal controls and reports',
      'No anonymous crypto-asset accounts, nor any that hide transactions, such as by anonymity-enhancing coins (Article 79)',
      'Assess and mitigate the risk of transfers with self-hosted addresses (Article 40)',
    ],
    asks: ['In which Member State is the business established, and what does its own law ask until then?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://service.betterregulation.com/document/739346',
        'https://www.digitalacts.eu/regulation/anti-money-laundering-regulation/article/40/measures-to-mitigate-risks-in-relation-to-transactions-with-a-self-hosted-address',
        'https://arthurcox.com/insights/aml-update-single-rulebook-and-amla-regulations-and-related-directives-published-in-official-journal',
        'https://cryptoslate.com/?p=540149',
      ],
    },
  },
  {
    id: 'eu-dora',
    jurisdiction: 'EU',
    subjects: [...ASSETS, 'stablecoin-issuance'],
    name: 'Digital Operational Resilience Act',
    citation: 'Regulation (EU) 2022/2554 (Article 2)',
    url: 'https://eur-lex.europa.eu/eli/reg/2022/2554/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32022R2554',
    since: '2025-01-17',
    trigger:
      'Being a financial entity in its scope: crypto-asset service providers, payment institutions and e-money institutions among others.',
    obligations: [
      'ICT risk management, classification and reports of incidents, resilience testing, and risk of ICT third parties',
    ],
    asks: [],
    read: {
      on: '2026-11-22',
      at: [
        'https://raw.githubusercontent.com/ThomasMoreAI/legal-skills-open/main/eu/cybersecurity/skills/dora/references/article-reference.md',
        'https://raw.githubusercontent.com/siegfriedbolz/ai-governance-watch/main/memory-mirror/reference_dora.md',
      ],
    },
  },
  {
    id: 'eu-gdpr',
    jurisdiction: 'EU',
    subjects: ['personal-data'],
    name: 'General Data Protection Regulation',
    citation: 'Regulation (EU) 2016/679 (Articles 3, 6, 27 and 33)',
    url: 'https://eur-lex.europa.eu/eli/reg/2016/679/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32016R0679',
    since: '2018',
    trigger:
      'Processing personal data by an establishment in the Union, or of persons there to whom goods or services are offered or whose behaviour is monitored (Article 3).',
    obligations: [
      'A lawful basis (Article 6) and the rights of the persons concerned',
      'Notify a breach to the authority within 72 hours of becoming aware of it, unless it is unlikely to be a risk (Article 33)',
      'From outside the Union: name a representative in it, with exceptions (Article 27)',
    ],
    asks: ['Which personal data is processed, and on which basis?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://github.com/stuhlmeier/gdpr',
        'https://raw.githubusercontent.com/ThomasMoreAI/legal-skills-open/main/general/data-protection/skills/breach-72h-notification/references/standards.md',
        'https://raw.githubusercontent.com/ThomasMoreAI/legal-skills-open/main/eu/data-protection/skills/legal-eu-clemensjl/references/gdpr-internal.md',
      ],
    },
  },
  {
    id: 'eu-psd2',
    jurisdiction: 'EU',
    subjects: ['payments'],
    name: 'Payment Services Directive',
    citation: 'Directive (EU) 2015/2366 (Articles 5, 10 and 11)',
    url: 'https://eur-lex.europa.eu/eli/dir/2015/2366/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32015L2366',
    since: '2018-01-13',
    trigger: 'Providing payment services as a business in the Union.',
    obligations: [
      'Apply for authorisation (Article 5) and safeguard users’ funds (Article 10)',
      'Strong customer authentication, by the technical standards that apply since 14 September 2019',
    ],
    licence: 'Authorisation as a payment institution (Article 11)',
    asks: ['Is money moved, or crypto-assets alone?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://legiview.cz/lex/view/32015L2366?lang=EN',
        'https://www.regulationtomorrow.com/eu/commission-adopts-delegated-regulation-on-rts-on-strong-customer-authentication-and-common-and-secure-communication-under-psd2/',
        'http://setrlogix.blogg.se/2023/june/moneymoney-psd2-api-subscription-2.html',
      ],
    },
  },
  {
    id: 'eu-dac8',
    jurisdiction: 'EU',
    subjects: ['tax-reporting'],
    name: 'DAC8',
    citation: 'Council Directive (EU) 2023/2226 amending Directive 2011/16/EU (Article 8ad, Annex VI)',
    url: 'https://eur-lex.europa.eu/eli/dir/2023/2226/oj/eng',
    amendments: 'https://eur-lex.europa.eu/legal-content/EN/ALL/?uri=CELEX:32023L2226',
    since: '2026-01-01',
    trigger:
      'Being a reporting crypto-asset service provider with users resident for tax in a Member State, from within the Union or from outside.',
    obligations: [
      'Collect and validate users’ self-certifications of tax residence',
      'Report their exchanges, transfers and certain payments every year; first exchange between states in 2027',
    ],
    asks: ['Where are the users resident for tax?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://sceau.eu/en/regulations/dac8.html',
        'https://kcgpartners.com/hu/hirek/1002-annual-reporting-obligations-introduced-for-crypto-asset-service-providers',
      ],
    },
  },
  {
    id: 'uk-mlr',
    jurisdiction: 'UK',
    subjects: ['crypto-exchange', 'custody'],
    name: 'Registration of cryptoasset businesses',
    citation:
      'Money Laundering, Terrorist Financing and Transfer of Funds (Information on the Payer) Regulations 2017 (regulation 14A)',
    url: 'https://www.legislation.gov.uk/uksi/2017/692/contents',
    since: '2020',
    trigger:
      'Being a cryptoasset exchange provider or custodian wallet provider in the United Kingdom, until the regime of 25 October 2027 takes its place for what that regulates.',
    obligations: ['Be registered with the FCA'],
    licence: 'Registration with the FCA',
    asks: ['Is the business carried on in the United Kingdom?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.regulationtomorrow.com/2026/03/fca-webpage-on-cryptoasset-firms-registration-under-the-mlrs-ahead-of-the-new-regime/',
        'https://rosenblatt-law.co.uk/insight/what-is-happening-with-crypto-regulation',
        'https://www.rahmanravelli.co.uk/expertise/cryptocurrency/articles/the-uk-travel-rule/',
      ],
    },
  },
  {
    id: 'uk-cryptoassets-2026',
    jurisdiction: 'UK',
    subjects: ['crypto-exchange', 'custody', 'stablecoin-issuance', 'token-offering'],
    name: 'Regulated cryptoasset activities',
    citation: 'Financial Services and Markets Act 2000 (Cryptoassets) Regulations 2026, SI 2026/102',
    url: 'https://www.legislation.gov.uk/uksi/2026/102/contents',
    since: '2026-02-04',
    begins: { date: '2027-10-25' },
    trigger:
      'Carrying on a regulated cryptoasset activity in the United Kingdom: issuing a qualifying stablecoin there, safeguarding, a trading platform, dealing or arranging, staking; or offering qualifying cryptoassets to its public.',
    obligations: [
      'Be authorised by the FCA, or exempt; to act without is a crime',
      'No public offer of qualifying cryptoassets unless an exemption applies',
      'Applications since 30 September 2026; registration under the Money Laundering Regulations is not carried over',
    ],
    licence: 'Authorisation by the FCA',
    asks: ['Which of its activities are carried on, and for whom in the United Kingdom?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://techinsights.linklaters.com/post/102mgxr/uk-makes-crypto-legislation',
        'https://www.bakermckenzie.com/en/insight/publications/2026/02/united-kingdom-new-cryptoassets-regime-published',
        'https://www.prycewilliams.co.uk/blog/2026/03/uk-cryptoasset-regulations-october-2027',
        'https://www.paulhastings.com/insights/client-alerts/the-new-uk-cryptoasset-regime-its-time-to-act-and-build-your-plan',
      ],
    },
  },
  {
    id: 'uk-travel-rule',
    jurisdiction: 'UK',
    subjects: [...ASSETS],
    name: 'Travel rule for cryptoasset transfers',
    citation:
      'Money Laundering Regulations 2017, Part 7A (regulations 64A to 64H), inserted by the Amendment (No. 2) Regulations 2022',
    url: 'https://www.legislation.gov.uk/uksi/2017/692/part/7A',
    since: '2023-09-01',
    trigger: 'A transfer by a cryptoasset exchange provider or custodian wallet provider.',
    obligations: [
      'Information on originator and beneficiary goes with transfers between cryptoasset businesses; what is received is verified',
    ],
    asks: ['Are transfers made to or from businesses abroad, and has their state such a rule?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://www.jmlsg.org.uk/latest-news/jmlsg-publishes-new-guidance-3/',
        'https://www.regulationtomorrow.com/eu/the-money-laundering-and-terrorist-financing-amendment-no-2-regulations-2022/',
        'https://www.mayerbrown.com/en/insights/publications/2023/09/navigating-the-travel-rule-for-uk-cryptoasset-businesses',
      ],
    },
  },
  {
    id: 'uk-promotions',
    jurisdiction: 'UK',
    subjects: ['marketing', 'token-offering', 'crypto-exchange'],
    name: 'Financial promotions of qualifying cryptoassets',
    citation:
      'Financial Services and Markets Act 2000 s. 21; Financial Services and Markets Act 2000 (Financial Promotion) (Amendment) Order 2023',
    url: 'https://www.legislation.gov.uk/uksi/2023/612/contents',
    since: '2023-10-08',
    trigger:
      'Promoting qualifying cryptoassets in a way that can have an effect in the United Kingdom, from wherever it comes. Up to two years of imprisonment and an unlimited fine.',
    obligations: [
      'Promote only as an authorised firm, with the approval of one, as a cryptoasset business registered with the FCA, or under an exemption',
    ],
    asks: ['Can persons in the United Kingdom act on the promotion?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://ramparts.gi/uk-cryptoasset-financial-promotion-regime/',
        'https://webiis06.mondaq.com/uk/fin-tech/1328360/crypto-marketing--4-months-to-comply-with-new-uk-rules',
        'https://rosenblatt-law.co.uk/insight/what-is-happening-with-crypto-regulation',
      ],
    },
  },
  {
    id: 'uk-samla',
    jurisdiction: 'UK',
    subjects: ['sanctions', ...ASSETS],
    name: 'UK sanctions',
    citation: 'Sanctions and Anti-Money Laundering Act 2018 and the regulations under it',
    url: 'https://www.legislation.gov.uk/ukpga/2018/13/contents',
    since: '2020-12-31',
    trigger:
      'Dealing with a person or ship designated under the Act, in the United Kingdom. OFSI counts an entity of which such a person owns more than 50 percent as concerned too.',
    obligations: [
      'Keep to what the regulations of the regime say; under an asset freeze, transactions with listed persons are generally prohibited',
      'Since 28 January 2026 the UK Sanctions List is the one list of these designations, and OFSI’s consolidated list is closed; investment bans and proscribed organisations stand in lists of their own',
    ],
    asks: ['Is a UK person part of the operation?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://complianceconcourse.willkie.com/resources/sanctions-uk-sanctions-lists',
        'https://comsuregroup.com/news/ask-mat-is-there-one-uk-sanction-list-i-should-be-concerned-with-or-are-there-two-three-or-four',
        'https://bizcom.to/article/changes-to-uk-sanctions-designations-list-what-african-operations-need-to-know-404979a',
        'https://www.customsmanager.info/post/uk-sanctions-guide-what-businesses-need-to-know',
      ],
    },
  },
  {
    id: 'uk-gdpr',
    jurisdiction: 'UK',
    subjects: ['personal-data'],
    name: 'UK GDPR and Data Protection Act 2018',
    citation: 'Data Protection Act 2018 (c. 12); UK GDPR; Data (Use and Access) Act 2025 (c. 18)',
    url: 'https://www.legislation.gov.uk/ukpga/2018/12/contents',
    since: '2018-05-25',
    trigger:
      'Processing personal data in the United Kingdom. Most amendments of 2025 are in force since 5 February 2026.',
    obligations: [
      'Tell persons who processes what, why and on which lawful basis (Articles 13 and 14)',
      'Notify a breach to the authority within 72 hours of becoming aware of it (Article 33)',
      'Pay the data protection fee, unless exempt',
    ],
    asks: ['Which personal data is processed?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://raw.githubusercontent.com/ThomasMoreAI/legal-skills-open/main/gb/data-protection/skills/legal-uk-clemensjl/references/privacy-notice.md',
        'https://raw.githubusercontent.com/ThomasMoreAI/legal-skills-open/main/gb/data-protection/skills/legal-uk-clemensjl/references/accountability-and-fee.md',
        'https://huggingface.co/datasets/VersionRAG/VersionQA-Legal',
        'https://glama.ai/mcp/connectors/com.doubleaigents.www/dsar/tools/breach_clock',
      ],
    },
  },
  {
    id: 'ch-amla',
    jurisdiction: 'CH',
    subjects: [...ASSETS],
    name: 'Anti-money-laundering duties for payments on a blockchain',
    citation: 'Anti-Money Laundering Act; FINMA Guidance 02/2019 (26 August 2019)',
    url: 'https://www.fedlex.admin.ch/eli/cc/1998/892_892_892/en',
    since: '2019-08-26',
    trigger: 'Being a financial intermediary in Switzerland, blockchain service providers among them.',
    obligations: [
      'Join a self-regulatory organisation, or be supervised by FINMA',
      'Identify customers and beneficial owners, monitor relationships, report suspicions to MROS',
      'Under FINMA’s supervision: send information on originator and beneficiary with payments; while that cannot be done reliably, deal only with external wallets of one’s own identified customers',
    ],
    licence: 'Membership of a self-regulatory organisation, or a licence of FINMA',
    asks: ['Is the activity carried on in or from Switzerland?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://ro.scribd.com/document/423336525/20190826-Finma-Aufsichtsmitteilung-02-2019',
        'https://www.mondaq.com/Article/846760/Fintech-Newsletter-September-2019-Practical-Implications-Of-The-New-FINMA-Guidance-On-Payments-On-The-Blockchain',
        'https://oldwp.irglobal.com/article/switzerland-issued-banking-licences-to-2-blockchain-service-providers',
      ],
    },
  },
];
