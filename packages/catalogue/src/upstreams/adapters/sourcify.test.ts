import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createUpstreamSandbox } from '../../../../sandbox/src/upstreams/server.ts';
import { connectUpstream } from '../http.ts';
import { overTheWire } from '../wire-server.fixture.ts';
import { sourcify } from './sourcify.ts';

const ADDRESS = '0x4200000000000000000000000000000000000006';
const PATH = `/v2/contract/8453/${ADDRESS}`;
/** A reply of API v2, cut to the requested fields and those that always come. */
const VERIFIED = {
  matchId: '7002',
  creationMatch: 'exact_match',
  runtimeMatch: 'exact_match',
  verifiedAt: '2026-01-05T10:00:00Z',
  match: 'exact_match',
  chainId: '8453',
  address: ADDRESS,
  compilation: {
    language: 'Solidity',
    compiler: 'solc',
    compilerVersion: '0.8.24+commit.e11b9ed9',
    compilerSettings: { remappings: ['@lib/=lib/'], optimizer: { enabled: true, runs: 200 } },
    name: 'Vault',
    fullyQualifiedName: 'src/Vault.sol:Vault',
  },
  sources: { 'src/Vault.sol': { content: 'contract Vault {}' } },
};

describe('Sourcify', () => {
  it('returns the source with how and when it was verified', async () => {
    await overTheWire(sourcify, [{ path: PATH, body: VERIFIED }], async (api, asked) => {
      const { value, source } = await api.contract(8453, ADDRESS);
      assert.deepEqual(value, {
        match: 'exact_match',
        verifiedAt: '2026-01-05T10:00:00Z',
        language: 'Solidity',
        compilerVersion: '0.8.24+commit.e11b9ed9',
        contractName: 'Vault',
        remappings: ['@lib/=lib/'],
        sources: { 'src/Vault.sol': 'contract Vault {}' },
      });
      assert.equal(source.asOf, '2026-01-05T10:00:00Z');
      assert.equal(asked[0]?.url.searchParams.get('fields'), 'sources,compilation');
    });
  });

  it('has no source for a contract that nobody verified', async () => {
    const unknown = {
      match: null,
      creationMatch: null,
      runtimeMatch: null,
      chainId: '8453',
      address: ADDRESS,
    };
    for (const status of [404, 200]) {
      await overTheWire(sourcify, [{ path: PATH, status, body: unknown }], async (api) => {
        assert.equal((await api.contract(8453, ADDRESS)).value, null);
      });
    }
  });

  it('refuses a reply of another shape', async () => {
    for (const body of [
      { ...VERIFIED, sources: { 'a.sol': 'text' } },
      { ...VERIFIED, compilation: { name: 'Vault' } },
      [],
    ]) {
      await overTheWire(sourcify, [{ path: PATH, body }], async (api) => {
        await assert.rejects(api.contract(8453, ADDRESS), { reason: 'invalid_reply' });
      });
    }
  });

  it('has a stand-in that answers in the same way, with and without the versioned path', async () => {
    const sandbox = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: 1 });
    const { url } = await sandbox.start();
    try {
      for (const baseUrl of [`${url}/sourcify`, `${url}/sourcify/server`]) {
        const connection = connectUpstream(
          sourcify,
          { baseUrl },
          { userAgent: 'test', acceptSandbox: true, nowMs: Date.now },
        );
        const api = sourcify.open(connection.http);
        const { value, source } = await api.contract(8453, '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432');
        assert.equal(value?.contractName, 'IdentityRegistry');
        assert.deepEqual(Object.keys(value.sources).sort(), ['Erc721.sol', 'IdentityRegistry.sol']);
        assert.equal(source.sandbox, true);
        assert.equal((await api.contract(1, ADDRESS)).value, null);
        await connection.close();
      }
    } finally {
      await sandbox.stop();
    }
  });
});
