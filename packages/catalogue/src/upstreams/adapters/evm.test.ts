import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  BaseError,
  BlockNotFoundError,
  ContractFunctionRevertedError,
  encodeAbiParameters,
  encodeErrorResult,
  erc20Abi,
  getAddress,
  parseAbi,
} from 'viem';
import { UpstreamUnavailable } from '../../../../core/src/words/failure.ts';
import { type Asked, againstLocalServer, type RawReply } from '../local-server.fixture.ts';
import { type EvmChain, evmUpstream } from './evm.ts';
import { EVM_CHAIN_NAMES, evmChainFacts } from './evm-chains.ts';

const TOKEN = '0x1111111111111111111111111111111111111111';
const FAILURE = parseAbi(['error Unlucky(uint256 number)', 'function f() view returns (uint256)']);
const at = { blockNumber: 7n, timestampMs: Date.parse('2026-11-21T05:30:00Z') };

interface RpcRequest {
  method: string;
  params: unknown[];
}
type Node = (request: RpcRequest) => { result: unknown } | { error: unknown } | { status: number };

function requestOf(asked: Asked): RpcRequest {
  const { method, params }: RpcRequest = JSON.parse(asked.body);
  return { method, params };
}

/** The Base adapter on a node that answers the first requests as given, and the rest as `node` does. */
function onNode<Result>(
  node: Node,
  run: (chain: EvmChain, requests: () => RpcRequest[]) => Promise<Result>,
  introduction: { chainId?: string; version?: string } = {},
): Promise<Result> {
  const replyTo = (asked: Asked): RawReply => {
    const request = requestOf(asked);
    const reply =
      request.method === 'eth_chainId'
        ? { result: introduction.chainId ?? '0x2105' }
        : request.method === 'web3_clientVersion'
          ? { result: introduction.version ?? 'Geth/v1.101' }
          : node(request);
    if ('status' in reply) return { status: reply.status, body: '{}' };
    return { body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...reply }) };
  };
  return againstLocalServer(evmUpstream('base'), {}, replyTo, (chain, asked) =>
    run(chain, () => asked.map(requestOf).filter(({ method }) => method !== 'eth_chainId')),
  );
}

const isUnavailable = (reason: string) => (error: unknown) =>
  error instanceof UpstreamUnavailable && error.upstream === 'base' && error.reason === reason;

describe('a result of another shape is a failure of the node', () => {
  const address = TOKEN;
  const reads: Readonly<Record<string, (chain: EvmChain) => Promise<unknown>>> = {
    eth_blockNumber: ({ client }) => client.getBlockNumber(),
    eth_gasPrice: ({ client }) => client.getGasPrice(),
    eth_getBalance: ({ client }) => client.getBalance({ address }),
    eth_getTransactionCount: ({ client }) => client.getTransactionCount({ address }),
    eth_call: ({ client }) => client.call({ to: address, data: '0x01020304' }),
    eth_getCode: ({ client }) => client.getCode({ address }),
    eth_getStorageAt: ({ client }) => client.getStorageAt({ address, slot: '0x0' }),
    eth_getBlockByNumber: ({ client }) => client.getBlock(),
    eth_getLogs: ({ client }) => client.getLogs({ address, fromBlock: 1n, toBlock: 2n }),
  };
  for (const [method, read] of Object.entries(reads))
    it(method, async () => {
      for (const result of [undefined, '', 'whatever', 7, { calls: [] }, '0xzz', [{}], { number: '0x' }])
        await onNode(
          () => ({ result }),
          (chain) => assert.rejects(read(chain), isUnavailable('invalid_reply'), JSON.stringify(result)),
        );
    });

  it('no newest block is such a failure, and a block that is not there is none', async () => {
    await onNode(
      () => ({ result: null }),
      async ({ client }) => {
        await assert.rejects(client.getBlock(), isUnavailable('invalid_reply'));
        await assert.rejects(client.getBlock({ blockNumber: 9n }), BlockNotFoundError);
      },
    );
  });
});

describe('an EVM chain', () => {
  it('batches simultaneous reads into one call, and shows the block but not the path of the node', async () => {
    const returned = encodeAbiParameters(
      [{ type: 'tuple[]', components: [{ type: 'bool' }, { type: 'bytes' }] }],
      [
        [
          [true, encodeAbiParameters([{ type: 'string' }], ['SYN'])],
          [true, encodeAbiParameters([{ type: 'uint8' }], [6])],
        ],
      ],
    );
    await onNode(
      () => ({ result: returned }),
      async ({ client, source }, requests) => {
        const contract = { address: TOKEN, abi: erc20Abi } as const;
        const read = await Promise.all([
          client.readContract({ ...contract, functionName: 'symbol' }),
          client.readContract({ ...contract, functionName: 'decimals' }),
        ]);
        assert.deepEqual(read, ['SYN', 6]);
        assert.equal(requests().filter(({ method }) => method === 'eth_call').length, 1);
        const shown = source(at);
        assert.match(shown.url, /^https:\/\/mainnet\.base\.org\/#block=7$/);
        assert.equal(shown.asOf, '2026-11-21T05:30:00.000Z');
        assert.deepEqual([shown.name, shown.sandbox, shown.cached], ['base', false, false]);
      },
    );
  });

  it('passes reverts on with their reason, both of a single call and of one in a batch', async () => {
    const data = encodeErrorResult({ abi: FAILURE, errorName: 'Unlucky', args: [13n] });
    const aggregated = encodeAbiParameters(
      [{ type: 'tuple[]', components: [{ type: 'bool' }, { type: 'bytes' }] }],
      [[[false, data]]],
    );
    const contract = { address: TOKEN, abi: FAILURE, functionName: 'f' } as const;
    const alone = () =>
      onNode(
        () => ({ error: { code: 3, message: 'execution reverted', data } }),
        // In a batch Multicall3 would be the sender, so a call with its own sender is sent alone.
        ({ client }) => client.simulateContract({ ...contract, account: TOKEN }),
      );
    const among = () =>
      onNode(
        () => ({ result: aggregated }),
        ({ client }) => client.readContract(contract),
      );
    for (const call of [alone, among]) {
      await assert.rejects(call(), (error) => {
        assert(error instanceof BaseError);
        const revert = error.walk((cause) => cause instanceof ContractFunctionRevertedError);
        assert(revert instanceof ContractFunctionRevertedError);
        assert.deepEqual([revert.data?.errorName, revert.data?.args], ['Unlucky', [13n]]);
        return true;
      });
    }
  });

  it('throws an outage as such, not as a failure of the contract that was read', async () => {
    await onNode(
      () => ({ status: 502 }),
      async ({ client }) => {
        const contracts = [{ address: TOKEN, abi: erc20Abi, functionName: 'symbol' }] as const;
        await assert.rejects(client.multicall({ contracts }), isUnavailable('upstream_down'));
        await assert.rejects(client.getBlockNumber(), isUnavailable('upstream_down'));
      },
    );
    await onNode(
      () => ({ error: { code: -32016, message: 'over rate limit' } }),
      ({ client }) => assert.rejects(client.getBlockNumber(), isUnavailable('rate_limited')),
    );
    await onNode(
      () => ({ error: { code: -32000, message: 'header not found' } }),
      ({ client }) => assert.rejects(client.getBalance({ address: TOKEN }), isUnavailable('upstream_down')),
    );
  });

  it('repeats a read once, and never sends a transaction twice', async () => {
    let failures = 1;
    const node: Node = ({ method }) =>
      method === 'eth_sendRawTransaction' || failures-- > 0 ? { status: 503 } : { result: '0x10' };
    await onNode(node, async ({ client }, requests) => {
      assert.equal(await client.getBlockNumber(), 16n);
      const serializedTransaction = '0x02';
      await assert.rejects(
        client.sendRawTransaction({ serializedTransaction }),
        isUnavailable('upstream_down'),
      );
      assert.equal(requests().filter(({ method }) => method === 'eth_sendRawTransaction').length, 1);
    });
  });

  it('refuses a node of another chain', async () => {
    await onNode(
      () => ({ result: '0x10' }),
      ({ client }) => assert.rejects(client.getBlockNumber(), isUnavailable('invalid_reply')),
      { chainId: '0x1' },
    );
  });

  it('marks the data of a development node as sandbox data', async () => {
    const read = async ({ client, source }: EvmChain) => {
      await client.getBlockNumber();
      return source(at).sandbox;
    };
    const node: Node = () => ({ result: '0x10' });
    assert.equal(await onNode(node, read, { version: 'anvil/v1.7.1' }), true);
    assert.equal(await onNode(node, read, { version: 'Nethermind/v1.30' }), false);
  });

  it('is healthy when it is the right chain and its head is recent', async () => {
    const head =
      (timestampMs: number): Node =>
      () => ({
        result: {
          number: '0x10',
          timestamp: `0x${Math.floor(timestampMs / 1_000).toString(16)}`,
          transactions: [],
        },
      });
    const { probe } = evmUpstream('base');
    await onNode(head(Date.now()), (chain) => probe(chain, Date.now()));
    await onNode(head(Date.now() - 3_600_000), (chain) =>
      assert.rejects(async () => probe(chain, Date.now()), /is old/),
    );
  });
});

describe('the list of chains', () => {
  it('spells every address with its checksum, and lists no token twice', () => {
    for (const name of EVM_CHAIN_NAMES) {
      const { usdc, wrappedNative, uniswapV3, tokens } = evmChainFacts(name);
      const addresses = tokens.map(({ address }) => address);
      for (const address of [
        ...addresses,
        usdc,
        wrappedNative.address,
        uniswapV3.factory,
        uniswapV3.quoter,
      ]) {
        assert.equal(address, getAddress(address.toLowerCase()), name);
      }
      assert.equal(new Set(addresses).size, addresses.length);
      assert(addresses.includes(usdc) && addresses.includes(wrappedNative.address), name);
    }
  });
});
