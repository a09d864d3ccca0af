import { chainName, outsiderText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { CHAINS } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { walletRisk } from '../../quant/wallet-risk.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { requireCoverage } from '../shared/screening/enough-evidence.ts';
import { recentCounterparties, walletActivity } from '../shared/wallet/wallet-activity.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';
import { addressLists, hitsOf, oracleVerdicts, verdictOf } from '../shared/wallet/wallet-screening.ts';

const DAY_MS = 86_400_000;
const EVIDENCE_SHOWN = 50;
const DISCLAIMER =
  'Information from public data as of the times given, scored by the points shown. It is not a legal finding and not advice.';

export default defineService({
  path: 'wallet-risk',
  name: 'Wallet Risk Analyzer',
  tag: 'Trading Intelligence',
  priceUsd: '0.50',
  summary:
    'Sanctions, mixers, age and activity of an EVM wallet from dated lists and the chain itself, scored point by point.',
  keywords:
    'trust trustworthy safe dangerous suspicious wallet address counterparty screening mixer tornado aml dirty stolen tainted hacker reputation check before sending risky blacklist',
  input: z.object({
    walletAddress: evmAddress('The wallet, on an EVM chain'),
    chain: chainName.default('base').describe('Where it is looked at; base unless given'),
  }),
  output: z.object({
    walletAddress: z.string().describe('The wallet that was asked about'),
    chain: z.enum(CHAINS).describe('The chain, by name'),
    riskScore: z.number().min(0).max(100).describe('Sum of the parts, at most 100'),
    riskTier: z.enum(['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']).describe('Band of the score'),
    complianceFlags: z
      .array(z.string())
      .describe('Codes of the parts met that are about sanctions or mixers'),
    parts: z
      .array(
        z.object({
          code: z.string().describe('What is counted'),
          points: z.number().nullable().describe('Null: not evaluated'),
          maxPoints: z.number().describe('The most that it can add'),
          because: z.string().describe('Why, in a sentence'),
        }),
      )
      .describe('What the score is made of'),
    coverage: z
      .number()
      .describe('Share of the card that could be evaluated, 0 to 1; below 0.3 only where it is CRITICAL'),
    analysis: z
      .object({
        sanctioned: z.boolean().describe('In a list, or by an oracle'),
        sanctionsOracles: z
          .array(
            z.object({
              chain: z.string().describe('The chain, by name'),
              sanctioned: z.boolean().nullable().describe('Null: it could not be asked'),
            }),
          )
          .describe('What the sanctions oracle of each chain says'),
        mixerInteractions: z
          .number()
          .int()
          .nullable()
          .describe('Mixing addresses dealt with in what was searched'),
        sanctionedCounterparties: z
          .number()
          .int()
          .nullable()
          .describe(
            'Sanctioned addresses that it exchanged tokens with in what was searched; null: nothing was',
          ),
        transactionCount: z.number().int().describe('Sent by it on this chain'),
        firstActivityAt: z.iso.datetime().nullable().describe('Its first transaction on this chain'),
        ageDays: z
          .number()
          .nullable()
          .describe(
            'Days since its first transaction; null without one, or where nobody could say (see the notes)',
          ),
        accountKind: z
          .enum(['externally_owned', 'contract', 'delegated'])
          .describe('Whether a key, a contract, or a key with delegated code (EIP-7702) rules it'),
        delegate: z.string().nullable().describe('Whose code a delegated account runs (EIP-7702)'),
        counterparties: z
          .number()
          .int()
          .nullable()
          .describe('Addresses it exchanged tokens with in what was searched'),
        searchedFromBlock: z
          .number()
          .int()
          .nullable()
          .describe('The first block that was searched; null where none was'),
        blockNumber: z.number().int().describe('The block at which it was read'),
      })
      .describe('What was read of the wallet'),
    evidence: z
      .array(
        z.object({
          code: z.string().describe('A name for machines'),
          address: z.string().describe('The address that the list names'),
          list: z.string().describe('The list, by its short name'),
          uid: z.string().describe('Id of the entry in its list'),
          name: outsiderText(300).describe('Whom the list names for it'),
          programs: z.array(outsiderText(100)).describe('Sanctions programmes that the entry is under'),
          listPublishedAt: z.string().describe('When its publisher issued the list'),
          transactionHash: z
            .string()
            .nullable()
            .describe('The transaction that shows it; null where none does'),
        }),
      )
      .describe('List entries that the score rests on'),
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
    recommendation: z.string().describe('What to do, in a sentence'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { walletAddress: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65', chain: 'base' },
  aliases: { address: 'walletAddress', wallet: 'walletAddress', chainId: 'chain', network: 'chain' },
  needs: [EVM_CHAIN_NAMES],
  uses: ['etherscan'],
  requires: ['lists'],
  timeoutMs: 25_000,
  async run({ walletAddress, chain }, { upstreams, lists, nowMs }) {
    const [head, opened] = await Promise.all([namedChain(chain, upstreams), addressLists(lists)]);
    const [activity, counterparties, oracles] = await Promise.all([
      walletActivity(head, walletAddress, upstreams),
      recentCounterparties(head, walletAddress),
      oracleVerdicts(head, walletAddress, upstreams),
    ]);
    const listed = hitsOf(opened.sanctions, walletAddress);
    const mixer = opened.mixers === null ? null : hitsOf([opened.mixers], walletAddress);
    const dealt = (sources: typeof opened.sanctions) =>
      (counterparties?.found ?? []).flatMap((each) =>
        hitsOf(sources, each.address).map((hit) => ({ ...each, hit })),
      );
    const withListed = dealt(opened.sanctions);
    const withMixers = opened.mixers === null ? null : dealt([opened.mixers]);
    const count = (dealings: readonly { address: string }[] | null) =>
      dealings === null || counterparties === null
        ? null
        : new Set(dealings.map(({ address }) => address.toLowerCase())).size;
    const ageDays =
      activity.first === null
        ? null
        : Math.max(0, Math.floor(((nowMs() - activity.first.timestampMs) / DAY_MS) * 10) / 10);
    const oracle = verdictOf(oracles.verdicts);
    const facts = {
      listed: listed.length > 0,
      oracle,
      mixer: mixer === null ? null : mixer.length > 0,
      sanctionedCounterparties: count(withListed),
      mixerCounterparties: count(withMixers),
      ageDays,
      transactions: activity.transactions,
      account: activity.account,
    };
    const card = walletRisk(facts);
    // What condemns a wallet by itself is told, however little else is known.
    if (card.tier !== 'CRITICAL') {
      requireCoverage(
        card.coverage,
        card.parts
          .filter(({ points }) => points === null)
          .sort((a, b) => b.maxPoints - a.maxPoints)
          .map(({ code }) => code),
        'chain',
      );
    }
    const shown = (code: string) => (hit: (typeof listed)[number], address: string, hash: string | null) => ({
      code,
      address,
      list: hit.list,
      uid: hit.uid,
      name: hit.name,
      programs: hit.programs,
      listPublishedAt: hit.publishedAt,
      transactionHash: hash,
    });
    const evidence = [
      ...listed.map((hit) => shown('SANCTIONS_LIST')(hit, walletAddress, null)),
      ...(mixer ?? []).map((hit) => shown('MIXER')(hit, walletAddress, null)),
      ...withListed.map(({ hit, address, transactionHash }) =>
        shown('SANCTIONED_COUNTERPARTY')(hit, address, transactionHash),
      ),
      ...(withMixers ?? []).map(({ hit, address, transactionHash }) =>
        shown('MIXER_COUNTERPARTY')(hit, address, transactionHash),
      ),
    ];
    const notes = [...opened.notes, ...oracles.notes, ...activity.notes];
    if (counterparties === null) {
      notes.push(`Counterparties are null: the node of ${chain} lets nobody search its events.`);
    } else notes.push(...counterparties.notes);
    if (evidence.length > EVIDENCE_SHOWN)
      notes.push(`${evidence.length} pieces of evidence: ${EVIDENCE_SHOWN} are shown.`);
    return answer(
      {
        walletAddress,
        chain: head.chain.name,
        riskScore: card.score,
        riskTier: card.tier,
        complianceFlags: card.parts
          .filter(({ code, points }) => (points ?? 0) > 0 && /SANCTION|MIXER/.test(code))
          .map(({ code }) => code),
        parts: card.parts,
        coverage: card.coverage,
        analysis: {
          sanctioned: facts.listed || oracle === true,
          sanctionsOracles: oracles.verdicts,
          mixerInteractions: facts.mixerCounterparties,
          sanctionedCounterparties: facts.sanctionedCounterparties,
          transactionCount: activity.transactions,
          firstActivityAt:
            activity.first === null ? null : new Date(activity.first.timestampMs).toISOString(),
          ageDays,
          accountKind: activity.account,
          delegate: activity.delegate,
          counterparties:
            counterparties === null ? null : new Set(counterparties.found.map((each) => each.address)).size,
          searchedFromBlock: counterparties === null ? null : Number(counterparties.fromBlock),
          blockNumber: Number(head.blockNumber),
        },
        evidence: evidence.slice(0, EVIDENCE_SHOWN),
        lists: opened.facts,
        recommendation: recommendationOf(card.tier, facts.listed || oracle === true),
        disclaimer: DISCLAIMER,
      },
      {
        method:
          'Points are added up as in parts: a listed address 100, a counterparty that is listed 75 and more, a mixing service 60, dealing with one 30 to 45, youth up to 15, few transactions up to 10, code at the address 5. LOW is below 25, MEDIUM below 50, HIGH below 75, CRITICAL from there. What is unknown lowers coverage and not the score; below a coverage of 0.3 only CRITICAL is told, and otherwise nothing is charged.',
        sources: [...opened.sources, head.source, ...activity.sources, ...oracles.sources],
        notes,
      },
    );
  },
});

function recommendationOf(tier: string, sanctioned: boolean): string {
  if (sanctioned)
    return 'The address is listed: dealing with it may be forbidden. Ask whoever answers for sanctions.';
  if (tier === 'CRITICAL') return 'Do not deal with it before somebody has looked at the evidence.';
  if (tier === 'HIGH') return 'Look at the evidence before dealing with it.';
  if (tier === 'MEDIUM') return 'Ask who it belongs to before dealing in large amounts.';
  return 'Nothing in what was looked at speaks against it.';
}
