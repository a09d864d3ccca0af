/**
 * The rule base: published rules with their citation, where to read them and since when they hold. Each entry was held
 * against the pages that it names (`read`), which are accounts of the law as often as the law itself; what none of them
 * said was left out. What this base does not hold, it does not know.
 */
import { ASSETS, type Rule } from './rule.ts';
import { AMERICAN_RULES } from './rules-americas.ts';
import { ASIAN_RULES } from './rules-asia.ts';
import { EUROPEAN_RULES } from './rules-europe.ts';

/** The day on which the base was last written. Later changes of any rule are not in it. */
export const RULES_AS_OF = '2026-11-29';

const INTERNATIONAL_RULES: readonly Rule[] = [
  {
    id: 'fatf-r15-r16',
    jurisdiction: 'INTL',
    subjects: [...ASSETS],
    name: 'FATF Recommendations 15 and 16 for virtual asset service providers',
    citation:
      'FATF Recommendations 15 and 16; Updated Guidance for a Risk-Based Approach to Virtual Assets and Virtual Asset Service Providers (October 2021)',
    url: 'https://www.fatf-gafi.org/publications/fatfrecommendations/documents/Updated-Guidance-RBA-VA-VASP.html',
    since: '2021-10',
    trigger:
      'Virtual asset services as a business. A standard for states: it binds businesses through their law.',
    obligations: [
      'States license or register such businesses and regulate them',
      'Customer information is collected, verified and exchanged before a transfer of virtual assets',
    ],
    asks: ['Which states’ law applies to the business?'],
    read: {
      on: '2026-11-22',
      at: [
        'https://ru.scribd.com/document/535634401/Updated-Guidance-VA-VASP',
        'https://encrypthos.com/area/fatf-recommendation-15',
        'https://www.21analytics.ch/glossary/recommendation-16/',
      ],
    },
  },
];

export const RULES: readonly Rule[] = [
  ...INTERNATIONAL_RULES,
  ...AMERICAN_RULES,
  ...EUROPEAN_RULES,
  ...ASIAN_RULES,
];
