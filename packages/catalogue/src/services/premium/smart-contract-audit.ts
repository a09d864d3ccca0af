import { createHash } from 'node:crypto';
import { chainName, outsiderLines, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, ServiceFailure } from '@farebox/core/words/failure';
import { z } from 'zod';
import { codeAnalyser } from '../../code-analysis/analyser.ts';
import type { Analysis } from '../../code-analysis/job.ts';
import {
  FINDING_CLASSES,
  type FindingClass,
  RULES,
  SEVERITIES,
  TYPED_CLASSES,
  UNEXAMINED_CLASSES,
} from '../../code-analysis/rules/finding.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { MAX_SOURCE_BYTES } from '../../upstreams/adapters/sourcify.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { counted, POINTS, printable, reported, scored } from '../shared/chain/audit-report.ts';
import { type ContractCode, readContractCode } from '../shared/chain/contract-code.ts';
import { sourcesOf } from '../shared/chain/given-source.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';

const MAX_SOURCE_CHARACTERS = 200_000;
const MOST_FINDINGS = 100;
/** When to try again while the compilers are not here. */
const FETCHING_RETRY_MS = 60_000;
/** When to try again while too many analyses wait. */
const BUSY_RETRY_MS = 15_000;

const finding = z.object({
  id: z.string().describe('Id of the finding'),
  rule: z.string().describe('Which rule found it'),
  class: z.enum(FINDING_CLASSES).describe('Kind of the finding'),
  swc: z.string().nullable().describe('Entry of the SWC registry'),
  severity: z.enum(SEVERITIES).describe('How grave it is'),
  confidence: z.enum(['high', 'medium', 'low']).describe('How sure that is'),
  title: outsiderText(300).describe('What it is'),
  file: outsiderText(500).nullable().describe('The file; null where it is of none'),
  line: z.number().int().nullable().describe('Its first line; null where it has none'),
  endLine: z.number().int().nullable().describe('Its last line; null where it has none'),
  related: z
    .array(
      z.object({
        file: outsiderText(500).describe('The file'),
        line: z.number().int().describe('The line'),
        what: outsiderText(1000).describe('What is there'),
      }),
    )
    .describe('Other places that matter for it'),
  contract: outsiderText(300).nullable().describe('The contract; null where it is in none'),
  function: outsiderText(300).nullable().describe('The function; null where it is in none'),
  snippet: outsiderText(1000).nullable().describe('The line itself'),
  description: outsiderText(4000).describe('What is there, and why it matters'),
  remediation: outsiderText(4000).describe('How to mend it'),
});

/** The contract to audit, and where its source came from. */
interface Subject {
  sources: Record<string, string>;
  remappings: string[];
  origin: 'request' | 'sourcify';
  match: string | null;
  contractName: string | null;
  compilerSaid: string | null;
  provenance: Source[];
  notes: string[];
  code: ContractCode | null;
  blockNumber: bigint | null;
}

export default defineService({
  path: 'smart-contract-audit',
  name: 'Smart Contract Audit',
  tag: 'Premium',
  priceUsd: '10.00',
  summary:
    'Audit of verified or given Solidity source on the compiler’s own syntax tree: findings with lines, reason, remedy and confidence, and a score with its parts.',
  keywords:
    'audit review solidity source code vulnerability vulnerabilities bugs bug security reentrancy exploit hack flaws findings hacked weakness overflow static analysis check deploy',
  input: z
    .object({
      contractAddress: evmAddress(
        'Contract, 0x and 40 hex digits; its verified source is audited',
      ).optional(),
      chain: chainName.optional().describe('Where the contract is, such as "base"'),
      sourceCode: z
        .string()
        .min(1)
        .max(MAX_SOURCE_CHARACTERS)
        .optional()
        .describe(
          'Solidity source, or a compiler’s standard JSON input: audited instead of what is verified',
        ),
      contractName: text(200, 'Audit this contract alone, with its bases').optional(),
      scope: z
        .enum(['full', 'quick', 'targeted'])
        .default('full')
        .describe('quick: findings of HIGH and CRITICAL alone. targeted: `contractName` alone'),
    })
    .refine(({ contractAddress, sourceCode }) => contractAddress !== undefined || sourceCode !== undefined, {
      path: ['contractAddress'],
      message: 'send contractAddress with chain, or sourceCode',
    })
    .refine(
      ({ contractAddress, sourceCode, chain }) =>
        sourceCode !== undefined || contractAddress === undefined || chain !== undefined,
      {
        path: ['chain'],
        message: 'say on which chain the contract is, such as "base"',
      },
    )
    .refine(({ scope, contractName }) => scope !== 'targeted' || contractName !== undefined, {
      path: ['contractName'],
      message: 'scope "targeted" needs contractName',
    }),
  output: z.object({
    auditId: z.string().describe('The same for the same source, scope and rules'),
    score: z
      .number()
      .min(0)
      .max(100)
      .describe('100 less the points of the findings; no word on what no rule looks for'),
    scoreParts: z
      .array(
        z.object({
          severity: z.enum(SEVERITIES).describe('How grave it is'),
          count: z.number().int().describe('Findings of that severity'),
          pointsOff: z.number().describe('Points that they take off together'),
        }),
      )
      .describe('What was taken off, by severity'),
    findings: z.array(finding).describe(`Gravest first, at most ${MOST_FINDINGS}`),
    summary: z
      .object({
        critical: z.number().int().describe('Critical findings'),
        high: z.number().int().describe('High findings'),
        medium: z.number().int().describe('Medium findings'),
        low: z.number().int().describe('Low findings'),
      })
      .describe('Findings by severity'),
    verdict: outsiderText(1000).describe('The result in a sentence'),
    source: z
      .object({
        origin: z.enum(['sourcify', 'request']).describe('Whether the source is Sourcify’s or the request’s'),
        match: outsiderText(60).nullable().describe('How Sourcify matched it with the code on the chain'),
        contractName: outsiderText(300)
          .nullable()
          .describe('Its main contract; null where that is not known'),
        files: z.number().int().describe('Files'),
        lines: z.number().int().describe('Lines'),
        pragma: outsiderText(200)
          .nullable()
          .describe('The compiler versions that it asks for; null where it asks for none'),
        compiler: z.string().nullable().describe('What compiled it here; null: the tolerant parser read it'),
        compilerStated: outsiderText(200).nullable().describe('What it was compiled with, as Sourcify says'),
        pragmaReplaced: z
          .boolean()
          .describe('The version asked for is not here: the newest of its minor compiled it'),
        typed: z.boolean().describe('Whether a compiler resolved names and types'),
        compilerError: outsiderLines(2000).nullable().describe('Why no compiler took it; null where one did'),
        packages: z
          .array(z.string())
          .describe('Published packages, with the version, that stood in for imports that were not sent'),
      })
      .describe('What was audited'),
    examined: z
      .object({
        contracts: z.array(outsiderText(300)).describe('Contracts'),
        rules: z.array(z.string()).describe('Rules'),
        classes: z.array(z.enum(FINDING_CLASSES)).describe('Kinds of weakness that the rules look for'),
        classesOf: z
          .number()
          .int()
          .describe('Kinds of weakness in all: these and those that are not examined'),
      })
      .describe('What the audit covers'),
    notExamined: z.array(z.string()).describe('What the audit does not cover'),
    classesNotExamined: z
      .array(
        z.object({
          class: z.string().describe('The kind of weakness'),
          what: z.string().describe('What it is'),
        }),
      )
      .describe('Kinds of weakness that nothing here looked for'),
    contractAddress: z.string().nullable().describe('The contract; null where source was sent'),
    implementation: z.string().nullable().describe('For a proxy: whose source was audited'),
    chain: z.enum(CHAINS).nullable().describe('Its chain; null where source was sent'),
    codeHash: z.string().nullable().describe('keccak256 of the code at the address'),
    blockNumber: z
      .number()
      .int()
      .nullable()
      .describe('The block at which it was read; null where source was sent'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { contractAddress: '0x4200000000000000000000000000000000000006', chain: 'base' },
  aliases: {
    address: 'contractAddress',
    contract: 'contractAddress',
    tokenAddress: 'contractAddress',
    contractCode: 'sourceCode',
    source: 'sourceCode',
    code: 'sourceCode',
    network: 'chain',
    chainId: 'chain',
    name: 'contractName',
  },
  uses: [...EVM_CHAIN_NAMES, 'sourcify'],
  timeoutMs: 25_000,
  async run(input, { upstreams, signal }) {
    const subject =
      input.sourceCode === undefined
        ? await verified(input, upstreams)
        : given(input.sourceCode, input.contractAddress);
    const targets = targetOf(input, subject);
    const result = await codeAnalyser.analyse(
      { sources: subject.sources, remappings: subject.remappings, contracts: targets },
      signal,
    );
    const analysis = analysed(result);
    if (targets !== null && !analysis.contracts.some(({ name }) => targets.includes(name))) {
      throw noAnswer(
        'NO_SUCH_CONTRACT',
        `The source has no contract ${printable(targets[0] ?? '')}. It has: ${analysis.contracts
          .map(({ name }) => name)
          .slice(0, 20)
          .join(', ')}.`,
        'contractName',
      );
    }
    const chosen =
      input.scope === 'quick'
        ? analysis.findings.filter(({ severity }) => severity === 'CRITICAL' || severity === 'HIGH')
        : analysis.findings;
    const { score, parts } = scored(chosen);
    const findings = reported(chosen.slice(0, MOST_FINDINGS), subject.sources);
    const summary = counted(chosen);
    const classes = FINDING_CLASSES.filter((each) => analysis.compiler !== null || !TYPED_CLASSES.has(each));
    const allClasses = FINDING_CLASSES.length + Object.keys(UNEXAMINED_CLASSES).length;
    const cut = analysis.total > analysis.findings.length || chosen.length > findings.length;
    return answer(
      {
        auditId: auditId(subject.sources, input.scope, targets),
        score,
        scoreParts: parts,
        findings,
        summary,
        verdict:
          chosen.length === 0
            ? `No finding in ${classes.length} of ${allClasses} classes of weakness. That is no proof that there is nothing to find.`
            : `${chosen.length} finding${chosen.length === 1 ? '' : 's'}: ${summary.critical} critical, ${summary.high} high, ${summary.medium} medium, ${summary.low} low.`,
        source: described(subject, analysis),
        examined: {
          contracts: (
            targets ?? analysis.contracts.filter(({ role }) => role !== 'interface').map(({ name }) => name)
          ).slice(0, 200),
          rules: Object.keys(RULES),
          classes,
          classesOf: allClasses,
        },
        classesNotExamined: classesNotExamined(classes),
        notExamined: notExamined(subject, analysis, input.scope),
        contractAddress: input.contractAddress ?? null,
        implementation: subject.code?.proxy?.implementation ?? null,
        chain: input.chain ?? null,
        codeHash: subject.code?.codeHash ?? null,
        blockNumber: subject.blockNumber === null ? null : Number(subject.blockNumber),
        disclaimer:
          'A program read the source and applied the rules that it lists. This is information, not an assurance, and does not replace an audit by people.',
      },
      {
        method: `Static rules on the syntax tree of ${analysis.compiler === null ? 'a tolerant parser' : `solc ${analysis.compiler}`}, each entry walked along its paths with modifiers and internal calls inlined. Score: 100 less ${SEVERITIES.map((severity) => `${POINTS[severity].each} for each ${severity} (at most ${POINTS[severity].most})`).join(', ')}, half of it for findings of low confidence.`,
        sources: subject.provenance,
        notes: [
          ...subject.notes,
          ...(analysis.pragmaReplaced
            ? [
                `The pragma ${printable(analysis.pragma ?? '')} names a version that is not here; solc ${analysis.compiler}, the newest of its minor, compiled it.`,
              ]
            : []),
          ...(analysis.compiler === null
            ? [
                'No compiler here took the source, so names and types were resolved by its text alone: rules see less.',
              ]
            : []),
          ...(analysis.packages.length > 0
            ? [
                `Imports that were not sent were read from ${analysis.packages.join(', ')}; whether the contract was built with these versions is not known.`,
              ]
            : []),
          ...(cut
            ? [
                `There are ${Math.max(analysis.total, chosen.length)} findings; the gravest ${findings.length} are listed.`,
              ]
            : []),
        ],
      },
    );
  },
});

type Uses = Pick<Upstreams, (typeof EVM_CHAIN_NAMES)[number] | 'sourcify'>;

/** The source that Sourcify has for the code at an address, or behind the proxy there. */
async function verified(
  input: { contractAddress?: `0x${string}` | undefined; chain?: ChainName | undefined },
  upstreams: Uses,
): Promise<Subject> {
  const { contractAddress, chain: name } = input;
  if (contractAddress === undefined || name === undefined) throw new Error('the input was not validated');
  const { chain, blockNumber, source: read } = await namedChain(name, upstreams);
  const code = await readContractCode(chain, contractAddress, blockNumber, name);
  const { value, source } = await upstreams.sourcify.contract(chain.chainId, code.logic.address);
  const behind = code.proxy === null ? '' : ` (the implementation behind the proxy ${contractAddress})`;
  if (value === null) {
    throw noAnswer(
      'NO_VERIFIED_SOURCE',
      `Sourcify has no verified source of ${code.logic.address}${behind} on ${name}. Send the source as sourceCode.`,
      'sourceCode',
    );
  }
  if (value.language !== 'Solidity') {
    throw noAnswer(
      'NOT_SOLIDITY',
      `The verified source of ${code.logic.address} is ${printable(value.language)}; only Solidity is audited.`,
      'contractAddress',
    );
  }
  const bytes = Object.values(value.sources).reduce((sum, each) => sum + Buffer.byteLength(each), 0);
  if (bytes > MAX_SOURCE_BYTES) {
    throw noAnswer(
      'SOURCE_TOO_LARGE',
      `The verified source has ${bytes} bytes; at most ${MAX_SOURCE_BYTES} are audited.`,
      'contractAddress',
    );
  }
  return {
    sources: value.sources,
    remappings: value.remappings,
    origin: 'sourcify',
    match: value.match,
    contractName: value.contractName,
    compilerSaid: value.compilerVersion,
    provenance: [source, read],
    notes:
      code.proxy === null
        ? []
        : [
            `${contractAddress} is a proxy (${code.proxy.kind}): what was audited is the source of ${code.logic.address}, to which it leads now.`,
          ],
    code,
    blockNumber,
  };
}

/** The source that came with the request. */
function given(sourceCode: string, contractAddress: string | undefined): Subject {
  const { sources, remappings } = sourcesOf(sourceCode);
  return {
    sources,
    remappings,
    origin: 'request',
    match: null,
    contractName: null,
    compilerSaid: null,
    provenance: [],
    notes:
      contractAddress === undefined
        ? []
        : [`Whether this is the source of ${contractAddress} was not checked: what was sent was audited.`],
    code: null,
    blockNumber: null,
  };
}

function targetOf(
  input: { scope: string; contractName?: string | undefined },
  subject: Subject,
): string[] | null {
  if (input.contractName !== undefined) return [input.contractName];
  return input.scope === 'targeted' && subject.contractName !== null ? [subject.contractName] : null;
}

/** @throws ServiceFailure, or the refusal of an input, when there is no analysis */
export function analysed(result: Awaited<ReturnType<typeof codeAnalyser.analyse>>): Analysis {
  switch (result.outcome) {
    case 'analysed':
      return result;
    case 'unreadable':
      throw noAnswer(
        'SOURCE_UNREADABLE',
        `The source cannot be read: ${printable(result.why.replace(/\s+/g, ' ')).slice(0, 700)}`,
        'sourceCode',
      );
    case 'exhausted':
      throw noAnswer(
        'SOURCE_TOO_COSTLY',
        {
          time: 'Reading the source took longer than an audit may.',
          memory: 'Reading the source took more memory than an audit may.',
          crash: 'The compiler broke on the source, as it does on what is nested very deeply.',
        }[result.limit],
        'sourceCode',
      );
    case 'fetching':
    case 'away':
      throw new ServiceFailure({
        status: 503,
        code: 'COMPILERS_NOT_READY',
        message:
          result.outcome === 'fetching'
            ? 'This server is fetching its compilers for the first time. Try again in a minute.'
            : 'This server could not fetch its compilers. Try again later.',
        retryAfterMs: FETCHING_RETRY_MS,
      });
    case 'busy':
      throw new ServiceFailure({
        status: 503,
        code: 'AUDITS_BUSY',
        message: 'Audits run one at a time, and the queue is full. Try again shortly.',
        retryAfterMs: BUSY_RETRY_MS,
      });
  }
}

function auditId(
  sources: Readonly<Record<string, string>>,
  scope: string,
  targets: readonly string[] | null,
): string {
  const facts = JSON.stringify([Object.entries(sources).sort(), scope, targets, Object.keys(RULES)]);
  return `audit_${createHash('sha256').update(facts).digest('hex').slice(0, 24)}`;
}

/** The source that was read, and what read it. */
function described(subject: Subject, analysis: Analysis) {
  return {
    origin: subject.origin,
    match: subject.match,
    contractName: subject.contractName,
    files: Object.keys(subject.sources).length,
    lines: Object.values(subject.sources).reduce((sum, each) => sum + each.split('\n').length, 0),
    pragma: analysis.pragma === null ? null : printable(analysis.pragma),
    compiler: analysis.compiler,
    compilerStated: subject.compilerSaid,
    pragmaReplaced: analysis.pragmaReplaced,
    typed: analysis.compiler !== null,
    compilerError:
      analysis.compilerError === null ? null : printable(analysis.compilerError.replace(/\s+/g, ' ')),
    packages: analysis.packages,
  };
}

/** The kinds of weakness that were not looked for, and why. */
function classesNotExamined(examined: readonly FindingClass[]): { class: string; what: string }[] {
  return [
    ...Object.entries(UNEXAMINED_CLASSES).map(([name, what]) => ({ class: name, what })),
    ...FINDING_CLASSES.filter((each) => !examined.includes(each)).map((each) => ({
      class: each,
      what: 'its rules need names and types, and no compiler took the source',
    })),
  ];
}

function notExamined(subject: Subject, analysis: Analysis, scope: string): string[] {
  return [
    'What the contract is meant to do: rules know patterns, not intentions.',
    'Prices, oracles and the economics of what it holds.',
    'Memory and computed storage places in inline assembly; before 0.6, all of it.',
    ...(subject.origin === 'request' ? ['Whether the source is that of any deployed code.'] : []),
    ...(analysis.compiler === null ? ['Whatever needs types: no compiler took the source.'] : []),
    ...(scope === 'quick' ? ['Findings below HIGH: the scope is quick.'] : []),
  ];
}
