import { chainName, outsiderText, text } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { hasWords } from '../../compliance/name-reading.ts';
import { namesakesSentence, recallSentence } from '../../compliance/name-recall.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { listFacts, SANCTIONS_LISTS } from '../listed-parties.ts';
import { type KnownOfParty, type NameMatch, nameMatches } from '../shared/screening/name-screening.ts';
import { recentCounterparties } from '../shared/wallet/wallet-activity.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';
import { addressLists, hitsOf, oracleVerdicts } from '../shared/wallet/wallet-screening.ts';

const FINDINGS_SHOWN = 25;
const DISCLAIMER =
  'Information from published lists as of the dates given. It is not a legal finding and not a certificate, and does not replace a screening duty of your own.';
/** Points deducted from 100 for each kind of finding. Only the largest deduction counts. */
const DEDUCTIONS = {
  ADDRESS_LISTED: 100,
  ORACLE_LISTED: 100,
  NAME_AND_BIRTH_DATE: 100,
  NAME_STRONG: 80,
  COUNTERPARTY_LISTED: 75,
  COUNTERPARTY_MIXER: 40,
  NAME_REVIEW: 40,
} as const;
type Finding = keyof typeof DEDUCTIONS;

/** The names that clients have for the two kinds that lists state. Any other word clears nothing. */
const KINDS: Readonly<Record<string, 'person' | 'entity'>> = {
  person: 'person',
  individual: 'person',
  human: 'person',
  entity: 'entity',
  company: 'entity',
  organisation: 'entity',
  organization: 'entity',
  business: 'entity',
};

/** Other names that existing clients use for the two depths. */
const DEPTHS: Readonly<Record<string, string>> = {
  aml: 'basic',
  kyc: 'basic',
  sanctions: 'basic',
  ofac: 'basic',
  standard: 'basic',
  full: 'enhanced',
  comprehensive: 'enhanced',
};

/** A wallet has to be named in any case; these say how it, and whoever has it, can be looked up. */
const CHOICES = [
  {
    field: 'checkType',
    value: 'basic',
    about: 'walletAddress against lists and oracles; and name, if given',
  },
  { field: 'checkType', value: 'enhanced', about: 'Also with whom it lately exchanged tokens' },
  {
    field: 'entityType',
    value: 'person',
    about: 'With name and walletAddress: whoever has the wallet is a person',
  },
  {
    field: 'entityType',
    value: 'entity',
    about: 'With name and walletAddress: it is a company or another body',
  },
  ...EVM_CHAIN_NAMES.map((value) => ({ field: 'chain', value, about: 'Where the wallet is looked at' })),
];

export default defineService({
  path: 'compliance-check',
  name: 'Compliance Check',
  tag: 'Banking',
  priceUsd: '1.75',
  summary:
    'Checks a wallet, and a name if given, against dated lists of sanctions: matches with list, entry and score; enhanced adds counterparties.',
  keywords:
    'sanction sanctions sanctioned ofac sdn un eu uk list lists blacklist blacklisted screening screen watchlist person company name kyc aml embargo terrorist pep allowed customer counterparty know your do business',
  input: z.object({
    walletAddress: evmAddress('The wallet, on an EVM chain'),
    name: text(200, 'Also look for this name of a person or entity, in any script; likeness is scored')
      .refine(hasWords, 'has no letter that a name could be looked up by')
      .optional(),
    birthDate: z.iso
      .date('must be a whole day, as 1952-10-07; leave it out where it is not known')
      .optional()
      .describe(
        'Date of birth of the person, YYYY-MM-DD. It clears entries whose every date of birth is more than two years away',
      ),
    entityType: text(
      40,
      '"person" or "entity". It clears entries that their list states to be of the other kind; any other word clears nothing',
    ).optional(),
    country: text(
      60,
      'Country of the person or entity. It clears nothing, because lists state it incompletely',
    ).optional(),
    checkType: z
      .preprocess(
        (value) => (typeof value === 'string' ? (DEPTHS[value.toLowerCase()] ?? value.toLowerCase()) : value),
        z.enum(['basic', 'enhanced']),
      )
      .default('basic')
      .describe('"basic": lists and oracles. "enhanced": also with whom it lately exchanged tokens'),
    chain: chainName
      .default('base')
      .describe('Where the oracle and counterparties are looked at; base unless given'),
  }),
  output: z.object({
    data: z
      .object({
        walletAddress: z.string().describe('The wallet that was asked about'),
        chain: z.string().describe('The chain that the wallet was looked at on'),
        name: z.string().nullable().describe('The name that was looked up; null where none was given'),
        checkType: z.enum(['basic', 'enhanced']).describe('How much was checked, as asked'),
        complianceStatus: z
          .enum(['Compliant', 'Non-Compliant', 'Needs Review'])
          .describe('"Compliant" says that nothing was found in what was looked at, and no more'),
        overallScore: z.number().describe('100 less the largest deduction'),
        deductions: z
          .array(
            z.object({
              code: z.string().describe('A name for machines'),
              points: z.number().describe('Points that it takes off'),
            }),
          )
          .describe('What lowers the score'),
        checks: z
          .array(
            z.object({
              regulation: z.string().describe('The rule or list'),
              status: z
                .enum(['clear', 'match', 'review', 'not_evaluated'])
                .describe(
                  'clear: nothing found; review: a person should look; not_evaluated: it could not be checked',
                ),
              findings: outsiderText(1000).describe('What was found, in a sentence'),
              source: z.string().describe('What it was checked against'),
              asOf: z.string().nullable().describe('Date of that source; null where it has none'),
            }),
          )
          .describe('Each check, done or not'),
        violations: z
          .array(
            z.object({
              code: z.string().describe('A name for machines'),
              address: z.string().describe('The sanctioned address'),
              list: z.string().describe('The list, by its short name'),
              uid: z.string().describe('Id of the entry in its list'),
              name: outsiderText(300).describe('Whom the list names for it'),
              programs: z.array(outsiderText(100)).describe('Sanctions programmes that the entry is under'),
              transactionHash: z
                .string()
                .nullable()
                .describe('The transaction that shows it; null where none does'),
            }),
          )
          .describe('Sanctioned addresses that were found'),
        nameMatches: z
          .array(
            z.object({
              list: z.string().describe('The list, by its short name'),
              listTitle: z.string().describe('The list, in full'),
              listPublishedAt: z.string().describe('When its publisher issued the list'),
              uid: z.string().describe('Id of the entry in its list'),
              name: outsiderText(300).describe('Main name of the entry'),
              matchedName: outsiderText(300).describe('The name or alias that is like it'),
              weakAlias: z.boolean().describe('The publisher holds this alias for a weak one'),
              kind: outsiderText(60).describe('Kind of the entry, such as person or vessel'),
              programs: z.array(outsiderText(100)).describe('Sanctions programmes that the entry is under'),
              score: z.number().describe('Likeness, 0 to 1; 1 is the same words in any order'),
              strength: z
                .enum(['strong', 'review'])
                .describe('strong counts as a match; review is for a person to decide'),
              clearedBy: z
                .enum(['birthDate', 'entityType'])
                .nullable()
                .describe(
                  'Which of your fields shows that the entry is somebody else, so that it lowers no score; null where it counts',
                ),
              sameBirthDate: z.boolean().describe('Whether the entry states the date of birth that you gave'),
            }),
          )
          .describe('Entries whose names are like the one given'),
        requiresEscalation: z.boolean().describe('Whether a person should look at it'),
        nextSteps: z.array(z.string()).describe('What to do next, in order'),
        lists: z
          .array(
            z.object({
              list: z.string().describe('The list, by its short name'),
              title: z.string().describe('The list, in full'),
              publishedAt: z.string().describe('When its publisher issued it'),
              confirmedAt: z.string().describe('When this server last checked that it is current'),
              sha256: z.string().describe('Hash of the file that was read, in hex'),
              entries: z.number().int().describe('Entries in it'),
            }),
          )
          .describe('The lists that were searched'),
        disclaimer: z.string().describe('What the answer is not, in a sentence'),
      })
      .describe('The check'),
  }),
  example: {
    walletAddress: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65',
    checkType: 'basic',
    name: 'Sandbox Listed 7',
  },
  choices: CHOICES,
  aliases: {
    address: 'walletAddress',
    wallet: 'walletAddress',
    entityId: 'walletAddress',
    entityName: 'name',
    fullName: 'name',
    dateOfBirth: 'birthDate',
    dob: 'birthDate',
    nationality: 'country',
    type: 'checkType',
    level: 'checkType',
    network: 'chain',
    chainId: 'chain',
  },
  needs: [EVM_CHAIN_NAMES],
  requires: ['lists'],
  timeoutMs: 25_000,
  async run({ walletAddress, name, checkType, chain, ...about }, { upstreams, lists }) {
    const known: KnownOfParty = {
      birthDate: about.birthDate ?? null,
      kind: KINDS[about.entityType?.toLowerCase() ?? ''] ?? null,
    };
    const [head, opened] = await Promise.all([namedChain(chain, upstreams), addressLists(lists)]);
    const named = name === undefined ? [] : SANCTIONS_LISTS.filter((list) => lists.configured.includes(list));
    const [oracles, searched, counterparties] = await Promise.all([
      oracleVerdicts(head, walletAddress, upstreams),
      Promise.all(named.map((list) => lists.current(list))),
      checkType === 'enhanced' ? recentCounterparties(head, walletAddress) : null,
    ]);
    const notes = [...oracles.notes, ...(checkType === 'enhanced' ? opened.notes : [])];
    const found = new Set<Finding>();
    const checks: {
      regulation: string;
      status: 'clear' | 'match' | 'review' | 'not_evaluated';
      findings: string;
      source: string;
      asOf: string | null;
    }[] = [];

    const listed = hitsOf(opened.sanctions, walletAddress);
    if (listed.length > 0) found.add('ADDRESS_LISTED');
    for (const list of opened.sanctions) {
      const own = listed.filter((hit) => hit.list === list.name);
      checks.push({
        regulation: `${list.title}: address`,
        status: own.length > 0 ? 'match' : 'clear',
        findings:
          own.length > 0
            ? `Entry ${own.map(({ uid, name: whose }) => `${uid} (${whose})`).join(', ')} has this address.`
            : 'No entry has this address.',
        source: list.name,
        asOf: list.publishedAt,
      });
    }
    for (const { chain: where, sanctioned } of oracles.verdicts) {
      if (sanctioned === true) found.add('ORACLE_LISTED');
      checks.push({
        regulation: `Sanctions oracle on ${where}`,
        status: sanctioned === null ? 'not_evaluated' : sanctioned ? 'match' : 'clear',
        findings:
          sanctioned === null
            ? 'No oracle answers there.'
            : sanctioned
              ? 'The oracle lists the address.'
              : 'The oracle does not list the address.',
        source: where,
        asOf: where === head.chain.name ? new Date(head.timestampMs).toISOString() : null,
      });
    }

    const nameHits: NameMatch[] = [];
    for (const list of searched) {
      const hits = await nameMatches(list, name ?? '', known);
      nameHits.push(...hits);
      const verdict = verdictOf(hits);
      if (verdict.finding !== null) found.add(verdict.finding);
      checks.push({
        regulation: `${list.title}: name`,
        status: verdict.status,
        findings: verdict.sentence,
        source: list.name,
        asOf: list.publishedAt,
      });
    }
    notes.push(...notesOf(name, about, known));
    if (name === undefined) {
      notes.push(
        'No name was given: only the address was looked up. What is read of the lists of the UN, the UK and the EU is names, not addresses.',
      );
    }

    const dealings = (counterparties?.found ?? []).map((each) => ({
      ...each,
      sanctions: hitsOf(opened.sanctions, each.address),
      mixers: opened.mixers === null ? [] : hitsOf([opened.mixers], each.address),
    }));
    const withListed = dealings.filter(({ sanctions }) => sanctions.length > 0);
    const withMixers = dealings.filter(({ mixers }) => mixers.length > 0);
    if (checkType === 'enhanced') {
      if (counterparties === null) {
        notes.push(`Counterparties are not evaluated: the node of ${chain} lets nobody search its events.`);
      } else notes.push(...counterparties.notes);
      if (withListed.length > 0) found.add('COUNTERPARTY_LISTED');
      if (withMixers.length > 0) found.add('COUNTERPARTY_MIXER');
      const direct = (
        regulation: string,
        hits: number,
        known: boolean,
        source: string,
        publishedAt: string | null,
      ) => ({
        regulation,
        status: !known ? ('not_evaluated' as const) : hits > 0 ? ('review' as const) : ('clear' as const),
        findings: !known
          ? 'Could not be searched.'
          : `${hits} of ${dealings.length} counterparties are listed.`,
        source,
        asOf: publishedAt,
      });
      checks.push(
        direct(
          'Counterparties, one step: sanctions',
          withListed.length,
          counterparties !== null,
          'ofac-sdn',
          opened.sanctions[0]?.publishedAt ?? null,
        ),
        direct(
          'Counterparties, one step: mixing services',
          withMixers.length,
          counterparties !== null && opened.mixers !== null,
          'mixers',
          opened.mixers?.publishedAt ?? null,
        ),
      );
    }

    const codes = [...found].sort((a, b) => DEDUCTIONS[b] - DEDUCTIONS[a]);
    const status =
      found.has('ADDRESS_LISTED') || found.has('ORACLE_LISTED') || found.has('NAME_AND_BIRTH_DATE')
        ? ('Non-Compliant' as const)
        : found.size > 0
          ? ('Needs Review' as const)
          : ('Compliant' as const);
    const used = [...opened.sanctions, ...(opened.mixers === null ? [] : [opened.mixers])];
    const all = [...used, ...searched.filter((list) => used.every((other) => other.name !== list.name))];
    const violations = [
      ...listed.map((hit) => ({ code: 'ADDRESS_LISTED', address: walletAddress as string, hit, hash: null })),
      ...withListed.flatMap(({ address, sanctions, transactionHash }) =>
        sanctions.map((hit) => ({ code: 'COUNTERPARTY_LISTED', address, hit, hash: transactionHash })),
      ),
      ...withMixers.flatMap(({ address, mixers, transactionHash }) =>
        mixers.map((hit) => ({ code: 'COUNTERPARTY_MIXER', address, hit, hash: transactionHash })),
      ),
    ];
    return answer(
      {
        data: {
          walletAddress,
          chain: head.chain.name,
          name: name ?? null,
          checkType,
          complianceStatus: status,
          overallScore: 100 - (codes[0] === undefined ? 0 : DEDUCTIONS[codes[0]]),
          deductions: codes.map((code) => ({ code, points: DEDUCTIONS[code] })),
          checks,
          violations: violations.slice(0, FINDINGS_SHOWN).map(({ code, address, hit, hash }) => ({
            code,
            address,
            list: hit.list,
            uid: hit.uid,
            name: hit.name,
            programs: hit.programs,
            transactionHash: hash,
          })),
          nameMatches: nameHits
            .sort((a, b) => Number(a.clearedBy !== null) - Number(b.clearedBy !== null) || b.score - a.score)
            .slice(0, FINDINGS_SHOWN),
          requiresEscalation: status !== 'Compliant',
          nextSteps: stepsFor(codes),
          lists: all.map(listFacts),
          disclaimer: DISCLAIMER,
        },
      },
      {
        method:
          'Addresses are compared exactly. Names are set in Latin letters (Han characters read as Mandarin, Cantonese and Korean; Arabic, Hebrew and the scripts of India by consonants), and their words paired by Jaro-Winkler and edit distance, by consonants, or by how a German, Polish, French, Spanish, Arabic, Chinese or Korean spelling is said, in any order: 0.92 and above is strong, 0.85 and above to be reviewed. A name whose every word is found in an entry is reviewed, whatever else the entry adds, and so are Chinese and Korean names that only sound alike. ' +
          `${recallSentence()}. ${namesakesSentence()}. ` +
          'A name alone is never Non-Compliant. An entry is cleared only by a whole date of birth more than two years from every one that it states, or by its other kind; a strong match is not cleared. The score is 100 less the largest deduction.',
        sources: [...all.map(({ source }) => source), head.source, ...oracles.sources],
        notes,
      },
    );
  },
});

/** The verdict of one list, from its entries with a name like the one asked for. */
function verdictOf(hits: readonly NameMatch[]): {
  finding: Finding | null;
  status: 'clear' | 'match' | 'review';
  sentence: string;
} {
  const counting = hits.filter(({ clearedBy }) => clearedBy === null);
  const strong = counting.filter(({ strength }) => strength === 'strong');
  const cleared = hits.length - counting.length;
  const clearedWords = cleared === 0 ? '' : ` ${cleared} more cleared by what was given of the party.`;
  const [best] = counting;
  if (best === undefined) {
    const sentence =
      cleared === 0
        ? 'No entry has a name like it.'
        : `${cleared} name(s) like it, all cleared by what was given of the party.`;
    return { finding: null, status: 'clear', sentence };
  }
  const finding = strong.some(({ sameBirthDate }) => sameBirthDate)
    ? 'NAME_AND_BIRTH_DATE'
    : strong.length > 0
      ? 'NAME_STRONG'
      : 'NAME_REVIEW';
  return {
    finding,
    status: strong.length > 0 ? 'match' : 'review',
    sentence: `${counting.length} name(s) like it; best ${best.matchedName}, entry ${best.uid}, score ${best.score}.${clearedWords}`,
  };
}

/** Notes that tell the caller which fields cleared nothing. */
function notesOf(
  name: string | undefined,
  { country, entityType }: { country?: string | undefined; entityType?: string | undefined },
  { birthDate, kind }: KnownOfParty,
): string[] {
  const notes: string[] = [];
  if (name === undefined && (birthDate !== null || entityType !== undefined || country !== undefined)) {
    notes.push('birthDate, entityType and country are compared with entries that have a similar name only.');
  }
  if (country !== undefined) notes.push('The country clears nothing: lists state it incompletely.');
  if (entityType !== undefined && kind === null) {
    notes.push(`The entityType "${entityType}" is no kind that lists state; it clears nothing.`);
  }
  return notes;
}

const STEPS: Readonly<Record<Finding, string>> = {
  ADDRESS_LISTED:
    'Do not deal with the address; ask whoever answers for sanctions whether property must be blocked and reported.',
  ORACLE_LISTED:
    'Do not deal with the address; ask whoever answers for sanctions whether property must be blocked and reported.',
  NAME_AND_BIRTH_DATE:
    'Do not deal with the customer before a person has compared the entry with what is known of them.',
  NAME_STRONG:
    'Compare date of birth, nationality and programme of the entry with what is known of the customer.',
  NAME_REVIEW:
    'Compare date of birth, nationality and programme of the entry with what is known of the customer.',
  COUNTERPARTY_LISTED:
    'Look at the transactions with listed counterparties, and ask where the money came from.',
  COUNTERPARTY_MIXER: 'Look at the transactions with mixing services, and ask where the money came from.',
};

function stepsFor(codes: readonly Finding[]): string[] {
  return codes.length === 0
    ? ['Keep this answer, with its dates, and ask again before the next dealing.']
    : [...new Set(codes.map((code) => STEPS[code]))];
}
