import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { concatHex, type Hex, keccak256, padHex } from 'viem';
import { z } from 'zod';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { startUpstreams } from '../../../../../apps/shop/test/server.fixture.ts';
import { ServiceFailure } from '../../../../core/src/words/failure.ts';
import { OWN_CONTRACTS } from '../../../../sandbox/src/chain/own-contracts.ts';
import { sourcify, type VerifiedSource } from '../../upstreams/adapters/sourcify.ts';
import { connectUpstream } from '../../upstreams/http.ts';
import { down, reply, runContext } from '../run-context.fixture.ts';
import { scored } from '../shared/chain/audit-report.ts';
import { sourcesOf } from '../shared/chain/given-source.ts';
import smartContractAudit, { analysed } from './smart-contract-audit.ts';

const BANK = `pragma solidity ^0.8.0;
contract Bank {
  mapping(address => uint256) owed;
  function put() public payable { owed[msg.sender] += msg.value; }
  function take() public {
    (bool ok,) = msg.sender.call{value: owed[msg.sender]}("");
    require(ok);
    owed[msg.sender] = 0;
  }
}
contract Other { address to; function f() public { to.call(""); } }
`;
const WETH = OWN_CONTRACTS.WrappedEther as Hex;
const PROXY: Hex = '0x00000000000000000000000000000000000b0001';
const IMPLEMENTATION_SLOT: Hex = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc';

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
});
after(() => chain.stop());

const asked: string[] = [];
const verified = (sources: Record<string, string>): VerifiedSource => ({
  match: 'exact_match',
  verifiedAt: '2026-01-05T10:00:00Z',
  language: 'Solidity',
  compilerVersion: '0.8.24+commit.e11b9ed9',
  contractName: 'Bank',
  remappings: [],
  sources,
});
const context = (value: VerifiedSource | null = null) =>
  runContext({
    ...chain.upstreams,
    sourcify: {
      contract: async (chainId, address) => {
        asked.push(`${chainId} ${address}`);
        return reply('sourcify', value);
      },
    },
  });
const run = async (body: Record<string, unknown>, value?: VerifiedSource | null) => {
  const made = await smartContractAudit.run(smartContractAudit.input.parse(body), context(value));
  assert.equal(smartContractAudit.output.safeParse(made.fields).error, undefined);
  // biome-ignore lint/suspicious/noExplicitAny: fields of the answer, which the schema above has checked
  return { ...made, fields: made.fields as any };
};
const refused = (body: Record<string, unknown>, code: string, value?: VerifiedSource | null) =>
  assert.rejects(
    run(body, value),
    (error) => error instanceof ServiceFailure && error.code === code && [404, 422].includes(error.status),
  );

describe('an audit of given source', () => {
  it('says rule, severity, line, reason, remedy and confidence, and how the score is made', async () => {
    const { fields, sources, method } = await run({ sourceCode: BANK });
    const [first, second] = fields.findings;
    assert.deepEqual(
      [first.rule, first.severity, first.line, first.contract, first.function, first.swc, first.confidence],
      ['reentrancy', 'HIGH', 6, 'Bank', 'take', 'SWC-107', 'high'],
    );
    assert.equal(first.snippet, '(bool ok,) = msg.sender.call{value: owed[msg.sender]}("");');
    assert.match(first.description, /owed changes in line 8, after the call in line 6\. Whoever/);
    assert.match(first.remediation, /before the call/);
    assert.deepEqual([second.rule, second.severity, second.line], ['unchecked-call', 'LOW', 11]);
    assert.deepEqual(fields.summary, { critical: 0, high: 1, medium: 0, low: 1 });
    assert.equal(fields.score, 100 - 20 - 1);
    assert.deepEqual(fields.scoreParts, [
      { severity: 'CRITICAL', count: 0, pointsOff: 0 },
      { severity: 'HIGH', count: 1, pointsOff: 20 },
      { severity: 'MEDIUM', count: 0, pointsOff: 0 },
      { severity: 'LOW', count: 1, pointsOff: 1 },
    ]);
    assert.deepEqual(
      [fields.source.origin, fields.source.compiler, fields.source.typed],
      ['request', '0.8.37', true],
    );
    assert.deepEqual(sources, []);
    assert.match(method, /solc 0\.8\.37/);
  });

  it('keeps to the scope', async () => {
    const quick = await run({ sourceCode: BANK, scope: 'quick' });
    assert.deepEqual(
      quick.fields.findings.map(({ rule }: { rule: string }) => rule),
      ['reentrancy'],
    );
    const targeted = await run({ sourceCode: BANK, scope: 'targeted', contractName: 'Other' });
    assert.deepEqual(
      targeted.fields.findings.map(({ rule }: { rule: string }) => rule),
      ['unchecked-call'],
    );
    assert.notEqual(quick.fields.auditId, targeted.fields.auditId);
    assert.equal((await run({ sourceCode: BANK, scope: 'quick' })).fields.auditId, quick.fields.auditId);
    await refused({ sourceCode: BANK, contractName: 'Nobody' }, 'NO_SUCH_CONTRACT');
  });

  it('says which compiler read it when the one asked for is not here, or none did', async () => {
    const exact = await run({ sourceCode: BANK.replace('^0.8.0', '0.8.3') });
    assert.deepEqual([exact.fields.source.pragmaReplaced, exact.fields.source.pragma], [true, '0.8.3']);
    assert.match(exact.notes.join(' '), /0\.8\.3 names a version that is not here; solc 0\.8\.37/);
    const broken = await run({ sourceCode: BANK.replace('require(ok)', 'requires(ok)') });
    assert.deepEqual([broken.fields.source.compiler, broken.fields.source.typed], [null, false]);
    assert.match(broken.fields.source.compilerError, /requires/);
    assert(broken.fields.classesNotExamined.some((each: { class: string }) => each.class === 'token-flow'));
    assert(!broken.fields.examined.classes.includes('token-flow'));
    assert.equal(broken.fields.findings[0].rule, 'reentrancy');
  });

  it('has a NUL in no field of the answer', async () => {
    const { fields } = await run({ sourceCode: BANK.replace('{value', '/* \0 */{value') });
    assert.equal(fields.findings[0].line, 6);
    assert(!JSON.stringify(fields).includes('\\u0000'));
  });

  it('is refused for what cannot be read, with what to send', async () => {
    await refused({ sourceCode: 'hello' }, 'SOURCE_UNREADABLE');
    await refused({ sourceCode: '{"a": 1}' }, 'SOURCE_UNREADABLE');
    await refused(
      { sourceCode: `contract A { uint x = ${'('.repeat(20_000)}1${')'.repeat(20_000)}; }` },
      'SOURCE_TOO_COSTLY',
    );
    for (const body of [
      {},
      { contractAddress: WETH },
      { sourceCode: BANK, scope: 'targeted' },
      { contractAddress: 'x', chain: 'base' },
    ])
      assert.equal(smartContractAudit.input.safeParse(body).success, false, JSON.stringify(body));
  });

  it('takes standard JSON, also in the braces of a block explorer', () => {
    const json = JSON.stringify({
      language: 'Solidity',
      sources: { 'a.sol': { content: 'contract A {}' } },
      settings: { remappings: ['x=y'] },
    });
    const expected = { sources: { 'a.sol': 'contract A {}' }, remappings: ['x=y'] };
    assert.deepEqual(sourcesOf(json), expected);
    assert.deepEqual(sourcesOf(`{${json}}`), expected);
    assert.deepEqual(sourcesOf('contract A {}').sources, { 'Contract.sol': 'contract A {}' });
  });
});

it('is refused for now, and costs nothing, while the compilers are not here', () => {
  for (const [outcome, message] of [
    ['fetching', /fetching its compilers/],
    ['away', /could not fetch/],
  ] as const)
    assert.throws(() => analysed({ outcome }), {
      status: 503,
      code: 'COMPILERS_NOT_READY',
      message,
      retryAfterMs: 60_000,
    });
});

it('is refused for now where the queue of audits is full', async () => {
  const callers = new AbortController();
  const audits = Array.from({ length: 9 }, (_, n) =>
    smartContractAudit.run(smartContractAudit.input.parse({ sourceCode: `contract Waiting${n} {}` }), {
      ...context(),
      signal: callers.signal,
    }),
  );
  const ended = Promise.allSettled(audits);
  await assert.rejects(audits[8] ?? Promise.resolve(), { status: 503, code: 'AUDITS_BUSY' });
  callers.abort(new Error('the callers left'));
  // The first eight had their place: one was at work, and seven waited.
  const reasons = (await ended).map((each) =>
    each.status === 'rejected' ? each.reason.message : 'answered',
  );
  assert.deepEqual(reasons.slice(0, 8), new Array(8).fill('the callers left'));
});

describe('an audit of a contract', () => {
  it('reads its verified source, and says what is at the address', async () => {
    const { fields, sources } = await run(
      { contractAddress: WETH, chain: 'base' },
      verified({ 'Bank.sol': BANK }),
    );
    assert.equal(asked.at(-1), `8453 ${WETH}`);
    const code = await chain.client.getCode({ address: WETH });
    assert.deepEqual([fields.codeHash, fields.implementation], [keccak256(code ?? '0x'), null]);
    assert.deepEqual(
      [fields.source.origin, fields.source.match, fields.source.compilerStated],
      ['sourcify', 'exact_match', '0.8.24+commit.e11b9ed9'],
    );
    assert.equal(fields.findings[0].rule, 'reentrancy');
    assert.deepEqual(
      sources.map(({ name }) => name),
      ['sourcify', 'base'],
    );
    const clean = await run(
      { contractAddress: WETH, chain: 'base' },
      verified({ 'A.sol': 'contract Bank { uint256 x; }' }),
    );
    assert.deepEqual([clean.fields.score, clean.fields.findings], [100, []]);
    assert.match(clean.fields.verdict, /^No finding in 19 of 27 classes of weakness\. That is no proof/);
    assert.deepEqual(
      [
        clean.fields.examined.classes.length,
        clean.fields.classesNotExamined.length,
        clean.fields.examined.classesOf,
      ],
      [19, 8, 27],
    );
  });

  it('of USDC on Base reads what Circle has published, which the sandbox’s source has', async () => {
    const sandbox = await startUpstreams();
    const connection = connectUpstream(
      sourcify,
      { baseUrl: `${sandbox.url}/sourcify` },
      { userAgent: 'test', acceptSandbox: true, nowMs: Date.now },
    );
    const upstreams = { ...chain.upstreams, sourcify: sourcify.open(connection.http) };
    const body = { contractAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain: 'base' };
    const made = await smartContractAudit.run(smartContractAudit.input.parse(body), runContext(upstreams));
    await connection.close();
    await sandbox.stop();
    const { source, implementation, summary } = z
      .object({
        source: z.object({ contractName: z.string(), typed: z.boolean(), compilerStated: z.string() }),
        implementation: z.string(),
        summary: z.record(z.string(), z.number()),
      })
      .parse(made.fields);
    assert.deepEqual(
      [source.contractName, source.typed, source.compilerStated, implementation],
      ['FiatTokenV2_2', true, '0.6.12+commit.27d51765', '0x2Ce6311ddAE708829bc0784C967b7d77D19FD779'],
    );
    // Approving anew without going through zero is what the standard asks for.
    assert.deepEqual(summary, { critical: 0, high: 0, medium: 0, low: 1 });
    assert(made.sources.some(({ name, sandbox }) => name === 'sourcify' && sandbox));
  });

  it('follows a proxy to the source behind it', async () => {
    await chain.client.setCode({ address: PROXY, bytecode: '0x00' });
    await chain.client.setStorageAt({
      address: PROXY,
      index: IMPLEMENTATION_SLOT,
      value: padHex(WETH, { size: 32 }),
    });
    const { fields, notes } = await run(
      { contractAddress: PROXY, chain: 'base' },
      verified({ 'Bank.sol': BANK }),
    );
    assert.equal(asked.at(-1), `8453 ${WETH}`);
    assert.equal(fields.implementation, WETH);
    assert.match(notes.join(' '), /is a proxy \(ERC-1967\)/);
  });

  it('is refused where there is nothing to read', async () => {
    await refused({ contractAddress: WETH, chain: 'base' }, 'NO_VERIFIED_SOURCE', null);
    await refused({ contractAddress: WETH, chain: 'base' }, 'NOT_SOLIDITY', {
      ...verified({ 'a.vy': '' }),
      language: 'Vyper',
    });
    await refused(
      { contractAddress: WETH, chain: 'base' },
      'SOURCE_TOO_LARGE',
      verified({ 'a.sol': ' '.repeat(1_000_001) }),
    );
    await refused(
      { contractAddress: '0x00000000000000000000000000000000000b0009', chain: 'base' },
      'NOT_FOUND',
      null,
    );
    await chain.client.setCode({ address: PROXY, bytecode: concatHex(['0xef0100', WETH]) });
    await refused({ contractAddress: PROXY, chain: 'base' }, 'NOT_A_CONTRACT', null);
  });

  it('is not answered while Sourcify is down', async () => {
    const broken = runContext({ ...chain.upstreams, sourcify: { contract: down('sourcify') } });
    await assert.rejects(
      smartContractAudit.run(
        smartContractAudit.input.parse({ contractAddress: WETH, chain: 'base' }),
        broken,
      ),
      { status: 503 },
    );
  });
});

describe('the score', () => {
  it('has a bound for each severity, counts half of what is not sure, and never falls below 0', () => {
    const many = (severity: 'CRITICAL' | 'HIGH' | 'MEDIUM' | 'LOW', count: number, confidence = 'high') =>
      Array.from({ length: count }, () => ({ severity, confidence }));
    assert.equal(scored(many('LOW', 50)).score, 92);
    assert.equal(scored(many('MEDIUM', 1, 'low')).score, 96);
    assert.equal(scored(many('CRITICAL', 5)).score, 20);
    assert.equal(scored([...many('CRITICAL', 5), ...many('HIGH', 5)]).score, 0);
  });
});
