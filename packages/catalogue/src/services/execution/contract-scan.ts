import { chainName, outsiderText } from '@farebox/core/service/fields';
import { openThread } from '@farebox/core/threads/thread';
import { answer, type Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, ServiceFailure } from '@farebox/core/words/failure';
import { type Address, erc20Abi, hexToBytes, parseAbi, size, zeroAddress } from 'viem';
import { z } from 'zod';
import type { CodeReading, Notable } from '../../code-analysis/bytecode/reach.ts';
import { SEVERITIES } from '../../code-analysis/rules/finding.ts';
import type { EvmChain } from '../../upstreams/adapters/evm.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { offThread } from '../off-thread.ts';
import { POINTS, printable, scored } from '../shared/chain/audit-report.ts';
import { type ContractCode, readContractCode } from '../shared/chain/contract-code.ts';
import { powersOf } from '../shared/chain/contract-powers.ts';
import { findingsOf } from '../shared/chain/scan-findings.ts';
import { type TokenTrade, tryTrade } from '../shared/chain/token-trade.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { isNotConfigured, namedChain } from '../shared/wallet/wallet-chains.ts';

const reader = openThread<Uint8Array, CodeReading>(
  new URL('../shared/chain/bytecode-program.ts', import.meta.url),
  {
    timeoutMs: 5_000,
    maxWaiting: 64,
    maxMemoryMb: 256,
  },
);

const OWNERSHIP = parseAbi([
  'function owner() view returns (address)',
  'function getOwner() view returns (address)',
  'function paused() view returns (bool)',
]);
const SELECTORS_SHOWN = 300;
const MAX_CODE_BYTES = 131_072;
/** The address that tokens are sent to so that nobody can have them again. */
const DEAD = '0x000000000000000000000000000000000000dead';
/** The outcome of a check. Whether its result speaks against the contract is in `vulnerabilities`. */
const check = z.object({
  found: z.boolean().nullable().describe('Null: not known, and detail says why'),
  detail: outsiderText(1000).describe('What was found, in a sentence'),
});

export default defineService({
  path: 'contract-scan',
  name: 'Contract Security Scanner',
  tag: 'Execution',
  priceUsd: '1.00',
  summary:
    'Scans a contract’s bytecode: dangers that a call can reach, proxies, the owner and its powers, a simulated sale.',
  keywords:
    'scan honeypot rug pull rugpull scam token contract bytecode safe dangerous malicious backdoor mint ownership owner proxy upgradeable blacklist tax check quick legit fake unverified',
  input: z.object({
    contractAddress: evmAddress('The contract'),
    chain: chainName,
  }),
  output: z.object({
    contractAddress: z.string().describe('The contract that was asked about'),
    chain: z.enum(CHAINS).describe('The chain, by name'),
    safetyScore: z
      .number()
      .min(0)
      .max(100)
      .describe('100 less the points of what was found; no word on what was not looked for'),
    scoreParts: z
      .array(
        z.object({
          severity: z.enum(SEVERITIES).describe('How grave it is'),
          count: z.number().int().describe('Findings of that severity'),
          pointsOff: z.number().describe('Points that they take off together'),
        }),
      )
      .describe('What was taken off, by severity'),
    vulnerabilities: z
      .array(
        z.object({
          id: z.string().describe('The rule that found it'),
          severity: z.enum(SEVERITIES).describe('How grave it is'),
          confidence: z.enum(['high', 'medium', 'low']).describe('How sure that is'),
          title: outsiderText(300).describe('What it is'),
          detail: outsiderText(1000).describe('Where and why'),
          pointsOff: z.number().describe('Before the bound of its severity'),
        }),
      )
      .describe('What was found'),
    verified: z.boolean().nullable().describe('Whether Sourcify has the source; null: it was not asked'),
    verifiedAs: z
      .object({
        name: outsiderText(200).nullable().describe('Name of the contract; null where it has none'),
        match: outsiderText(60).describe('How Sourcify matched it with the code on the chain'),
        language: outsiderText(60).describe('Language of the source'),
        compiler: outsiderText(100).describe('Compiler that built it'),
      })
      .nullable()
      .describe('The source that Sourcify has; null without one'),
    isProxy: z.boolean().describe('Whether it passes calls on to another contract'),
    proxy: z
      .object({
        kind: z.string().describe('The pattern, such as eip1967'),
        implementation: z.string().describe('Whose code it runs'),
        admin: z.string().nullable().describe('Who may change that; null where the pattern names nobody'),
        beacon: z.string().nullable().describe('The contract that names the code; null without one'),
      })
      .nullable()
      .describe('How it does; null for no proxy'),
    implementation: z.string().nullable().describe('For a proxy: whose code was scanned'),
    owner: z.string().nullable().describe('What owner() or getOwner() says'),
    ownership: z
      .enum(['owned', 'renounced', 'unknown'])
      .describe('unknown: it does not say; roles may rule it'),
    paused: z.boolean().nullable().describe('Whether it is paused now; null where it does not say'),
    checks: z
      .object({
        delegatecall: check.describe('The instruction DELEGATECALL, which runs other code as its own'),
        callcode: check.describe('The instruction CALLCODE, the old form of that'),
        selfdestruct: check.describe('The instruction SELFDESTRUCT'),
        create2: check.describe('The instruction CREATE2, which deploys at an address known before'),
        txOrigin: check.describe('The instruction ORIGIN, which reads who signed the transaction'),
        mint: check.describe('Can make more of the token'),
        blacklist: check.describe('Can stop single holders'),
        fees: check.describe('Can take a fee of transfers'),
        pause: check.describe('Can stop all transfers'),
        limits: check.describe('Can limit transfers'),
        upgrade: check.describe('Can change its code'),
        honeypot: check.describe('Can be bought and not sold'),
      })
      .describe('What was looked for, one by one'),
    trade: z
      .object({
        outcome: z
          .enum(['sold', 'purchase_failed', 'nothing_arrived', 'sale_failed'])
          .describe('How a trial purchase and sale ended'),
        reason: outsiderText(500).nullable().describe('Why it ended so; null where it was sold'),
        buyTaxPercent: z.number().nullable().describe('Percent lost on buying; null where it was not bought'),
        sellTaxPercent: z.number().nullable().describe('Percent lost on selling; null where it was not sold'),
        pool: z.string().describe('The pool of the trial'),
        poolKind: z.enum(['uniswap-v2', 'uniswap-v3']).describe('Its kind'),
        poolFeePercent: z.number().describe('Its fee in percent'),
        quoteToken: z.string().describe('The token that it was bought with'),
        spent: z.string().describe('In the smallest unit of quoteToken'),
      })
      .nullable()
      .describe('Null: checks.honeypot says why'),
    selectors: z
      .array(z.string())
      .describe(`Functions that its dispatcher knows, at most ${SELECTORS_SHOWN}`),
    walkComplete: z.boolean().describe('False: a part of the code was not walked'),
    compiler: outsiderText(100).nullable().describe('As the code’s own trailer says'),
    bytecodeSize: z.number().int().describe('Bytes at the address itself'),
    scannedBytes: z.number().int().describe('Bytes that were scanned, without the compiler’s trailer'),
    codeHash: z.string().describe('keccak256 of the code at the address'),
    blockNumber: z.number().int().describe('The block at which it was read'),
    disclaimer: z.string().describe('What the answer is not, in a sentence'),
  }),
  example: { contractAddress: '0x4200000000000000000000000000000000000006', chain: 'base' },
  aliases: {
    address: 'contractAddress',
    contract: 'contractAddress',
    tokenAddress: 'contractAddress',
    token: 'contractAddress',
    network: 'chain',
    chainId: 'chain',
  },
  needs: [EVM_CHAIN_NAMES],
  uses: ['sourcify'],
  timeoutMs: 25_000,
  async run({ contractAddress: address, chain: name }, { upstreams }) {
    const { chain, blockNumber, source } = await namedChain(name, upstreams);
    const code = await codeAt(chain, address, blockNumber, name);
    if (size(code.logic.code) > MAX_CODE_BYTES) {
      throw noAnswer(
        'CODE_TOO_LARGE',
        `The code has ${size(code.logic.code)} bytes; at most ${MAX_CODE_BYTES} are scanned.`,
        'contractAddress',
      );
    }
    const [reading, shell, rights, register, traded] = await Promise.all([
      offThread(reader, hexToBytes(code.logic.code)),
      code.proxy === null ? null : offThread(reader, hexToBytes(code.code)),
      rightsOf(chain, address, blockNumber),
      verifiedAs(upstreams, chain.chainId, code.logic.address),
      tradeOf(chain, address, blockNumber),
    ]);
    const trade = 'why' in traded ? null : traded;
    const selectors = [...new Set([...reading.selectors, ...(shell?.selectors ?? [])])];
    const powers = powersOf(selectors);
    const findings = findingsOf({
      reading,
      proxy: code.proxy,
      verified: register.verified,
      powers,
      ownership: rights.ownership,
      paused: rights.paused,
      trade,
    });
    const { score, parts } = scored(findings);
    const power = (which: keyof typeof powers) => ({
      found: powers[which].length > 0 ? true : reading.complete ? false : null,
      detail:
        powers[which].length > 0
          ? `Its dispatcher knows ${powers[which].slice(0, 10).join(', ')}.`
          : reading.complete
            ? 'None of the function signatures that are known for it. Another name for the same is not recognized.'
            : 'None was found in the part of the code that was walked.',
    });
    return answer(
      {
        contractAddress: address,
        chain: chain.name,
        safetyScore: score,
        scoreParts: parts,
        vulnerabilities: findings.map((each) => ({
          ...each,
          pointsOff: POINTS[each.severity].each / (each.confidence === 'low' ? 2 : 1),
        })),
        verified: register.verified,
        verifiedAs: register.as,
        isProxy: code.proxy !== null,
        proxy: code.proxy,
        implementation: code.proxy?.implementation ?? null,
        owner: rights.owner,
        ownership: rights.ownership,
        paused: rights.paused,
        checks: {
          delegatecall: instruction(reading, 'DELEGATECALL'),
          callcode: instruction(reading, 'CALLCODE'),
          selfdestruct: instruction(reading, 'SELFDESTRUCT'),
          create2: instruction(reading, 'CREATE2'),
          txOrigin: instruction(reading, 'ORIGIN'),
          mint: power('mint'),
          blacklist: power('blacklist'),
          fees: power('fees'),
          pause: power('pause'),
          limits: power('limits'),
          upgrade: power('upgrade'),
          honeypot: honeypot(traded),
        },
        trade:
          trade === null
            ? null
            : {
                outcome: trade.outcome,
                reason: trade.reason,
                buyTaxPercent: trade.buyTaxPercent,
                sellTaxPercent: trade.sellTaxPercent,
                pool: trade.pool,
                poolKind: trade.poolKind,
                poolFeePercent: trade.poolFee / 10_000,
                quoteToken: trade.quote,
                spent: String(trade.spent),
              },
        selectors: selectors.slice(0, SELECTORS_SHOWN),
        walkComplete: reading.complete,
        compiler: reading.metadata?.compiler ?? null,
        bytecodeSize: size(code.code),
        scannedBytes: reading.codeBytes,
        codeHash: code.codeHash,
        blockNumber: Number(blockNumber),
        disclaimer:
          'A program read the bytecode and simulated a trade at one block. This is information, not an audit and not advice.',
      },
      {
        method: `EVM code walked from its first byte with the constants on the stack known; functions from its dispatcher; proxy slots of ERC-1967, ERC-1822 and zeppelinos and the code of ERC-1167; owner(), getOwner() and paused(); purchase and sale in the deepest Uniswap v2 or v3 pool by eth_call with pretended code and money. Score: 100 less ${SEVERITIES.map((severity) => `${POINTS[severity].each} for each ${severity} (at most ${POINTS[severity].most})`).join(', ')}, half of it at low confidence.`,
        sources: [source, ...register.sources],
        notes: [
          ...register.notes,
          ...(code.proxy === null
            ? []
            : [`It is a proxy (${code.proxy.kind}): the code at ${code.logic.address} was scanned.`]),
          ...(rights.owner === null
            ? ['owner is null: neither owner() nor getOwner() answers with an address.']
            : []),
          ...(rights.paused === null ? ['paused is null: paused() does not answer.'] : []),
          ...(reading.complete
            ? []
            : [
                'The walk met a jump whose target it could not tell, or its bound: it may have missed things.',
              ]),
          ...(selectors.length > SELECTORS_SHOWN ? [`It has ${selectors.length} functions.`] : []),
          'That a branch depends on who calls does not say that it lets only an owner through.',
          'Source is not read here: smart-contract-audit does that.',
        ],
      },
    );
  },
});

/** @throws noAnswer also where there is no contract: the address is well-formed, and there is nothing to scan */
async function codeAt(
  chain: EvmChain,
  address: Address,
  blockNumber: bigint,
  name: ChainName,
): Promise<ContractCode> {
  try {
    return await readContractCode(chain, address, blockNumber, name);
  } catch (error) {
    if (!(error instanceof ServiceFailure) || error.status !== 404) throw error;
    throw noAnswer('NO_CODE', error.message, 'contractAddress');
  }
}

async function rightsOf(chain: EvmChain, address: Address, blockNumber: bigint) {
  const [owner, getOwner, paused] = await chain.client.multicall({
    blockNumber,
    contracts: [
      { address, abi: OWNERSHIP, functionName: 'owner' },
      { address, abi: OWNERSHIP, functionName: 'getOwner' },
      { address, abi: OWNERSHIP, functionName: 'paused' },
    ],
  });
  const said = owner.result ?? getOwner.result ?? null;
  const nobody = said === zeroAddress || said?.toLowerCase() === DEAD;
  return {
    owner: said,
    ownership: said === null ? ('unknown' as const) : nobody ? ('renounced' as const) : ('owned' as const),
    paused: paused.result ?? null,
  };
}

async function verifiedAs(upstreams: Pick<Upstreams, 'sourcify'>, chainId: number, address: Address) {
  try {
    const { value, source } = await upstreams.sourcify.contract(chainId, address);
    const as =
      value === null
        ? null
        : {
            name: value.contractName === null ? null : printable(value.contractName),
            match: value.match,
            language: printable(value.language),
            compiler: printable(value.compilerVersion),
          };
    return { verified: value !== null, as, sources: [source], notes: [] as string[] };
  } catch (error) {
    if (!isNotConfigured(error)) throw error;
    const sources: Source[] = [];
    return {
      verified: null,
      as: null,
      sources,
      notes: ['verified is null: Sourcify is not configured here.'],
    };
  }
}

async function tradeOf(
  chain: EvmChain,
  address: Address,
  blockNumber: bigint,
): Promise<TokenTrade | { why: string }> {
  const contract = { address, abi: erc20Abi } as const;
  const [supply, balance] = await chain.client.multicall({
    blockNumber,
    contracts: [
      { ...contract, functionName: 'totalSupply' },
      { ...contract, functionName: 'balanceOf', args: [zeroAddress] },
    ],
  });
  if (supply.result === undefined || balance.result === undefined)
    return { why: 'the contract is no ERC-20 token' };
  return tryTrade(chain, address, blockNumber);
}

function instruction(reading: CodeReading, which: Notable): z.input<typeof check> {
  const seen = reading.sightings.filter((each) => each.instruction === which);
  if (seen.length > 0) {
    const functions = [...new Set(seen.map(({ selector }) => selector ?? 'the fallback'))];
    return { found: true, detail: `A call can come to ${which}: in ${functions.slice(0, 10).join(', ')}.` };
  }
  const standing = reading.unreached.includes(which);
  if (reading.complete) {
    return {
      found: false,
      detail: standing
        ? `${which} stands in the code, and no path leads there.`
        : `${which} is not in the code.`,
    };
  }
  return standing
    ? { found: null, detail: `${which} stands in the code; whether a path leads there is not known.` }
    : { found: false, detail: `${which} is not in the code.` };
}

function honeypot(traded: TokenTrade | { why: string }): z.input<typeof check> {
  if ('why' in traded) return { found: null, detail: `Not tried: ${traded.why}.` };
  switch (traded.outcome) {
    case 'sold':
      return {
        found: false,
        detail: 'Bought and sold at once, one size at one block. It may be otherwise later, or for others.',
      };
    case 'sale_failed':
      return { found: true, detail: `Bought, and the sale failed: ${traded.reason}.` };
    case 'nothing_arrived':
      return { found: true, detail: 'Bought, and nothing arrived.' };
    case 'purchase_failed':
      return { found: null, detail: `It could not be bought: ${traded.reason}.` };
  }
}
