/**
 * Whether a vault would work over its lenders, before there is one: the vault is made in a simulation (`eth_simulateV1`), once for
 * each protocol as the first, and somebody deposits, leaves with a part in kind, and redeems the rest for USDC.
 */
import {
  type Abi,
  type Address,
  concatHex,
  decodeErrorResult,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  parseAbi,
} from 'viem';
import { type Chain, NotDeployable, PROTOCOLS, type Setup } from './setup.ts';

/** Somebody who has nothing to do with it. */
const PROVER: Address = '0x00000000000000000000000000000000f00dfee1';
/**
 * Makes what it is called with, a salt and a contract's creation code (the code of 0x4e59b44847b379578588920cA78FbF26c0B4956C). Nodes differ
 * in whether they simulate a transaction to nobody, and all simulate a call.
 */
const MAKER: Address = '0x00000000000000000000000000000000f00dfee2';
const MAKER_CODE: Hex =
  '0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3';
const SALT: Hex = `0x${'00'.repeat(32)}`;
const MICROS = 1_000_000n;
const DEPOSIT = 1_000n * MICROS;
/** What the vault's `seed` takes. */
export const SEED = MICROS;
/** Of a unit of USDC, at the first price. */
const SHARES_PER_UNIT = 1_000_000n;
/** What a quarter of the shares must bring of what was paid for them: the rest may be rounding. */
const LEAST_PER_MILLE = 999n;

const USDC_ABI = parseAbi([
  'function masterMinter() view returns (address)',
  'function configureMinter(address minter, uint256 allowed) returns (bool)',
  'function mint(address to, uint256 value) returns (bool)',
  'function approve(address spender, uint256 value) returns (bool)',
]);

interface Call {
  from: Address;
  to: Address;
  data: Hex;
}
interface Result {
  status: Hex;
  returnData: Hex;
}

/**
 * @param made how the vault is made: its code with the arguments of this setup, but for the first protocol
 * @throws NotDeployable when the vault would not take, hand over or pay out what it should with one of the protocols
 */
export async function prove(
  client: Chain,
  setup: Setup,
  made: { abi: Abi; bytecode: Hex; argumentOf(setup: Setup): unknown },
): Promise<void> {
  const { usdc } = setup;
  const minter = await client.readContract({ address: usdc, abi: USDC_ABI, functionName: 'masterMinter' });
  const { abi, bytecode } = made;
  const ofUsdc = (from: Address, functionName: never, args: never): Call => ({
    from,
    to: usdc,
    data: encodeFunctionData({ abi: USDC_ABI, functionName, args }),
  });
  for (const [index, active] of PROTOCOLS.entries()) {
    const data = encodeDeployData({ abi, bytecode, args: [made.argumentOf({ ...setup, active })] });
    const vault = getContractAddress({ opcode: 'CREATE2', from: MAKER, salt: SALT, bytecode: data });
    const ofVault = (functionName: string, args: readonly unknown[] = []): Call => ({
      from: PROVER,
      to: vault,
      data: encodeFunctionData({ abi, functionName, args }),
    });
    const net = (DEPOSIT * BigInt(10_000 - setup.fees.entryBps)) / 10_000n;
    const shares = net * SHARES_PER_UNIT;
    const calls: Record<string, Call> = {
      'be made': { from: PROVER, to: MAKER, data: concatHex([SALT, data]) },
      'allow a minter': ofUsdc(minter, 'configureMinter' as never, [minter, SEED + DEPOSIT] as never),
      'get USDC': ofUsdc(minter, 'mint' as never, [PROVER, SEED + DEPOSIT] as never),
      approve: ofUsdc(PROVER, 'approve' as never, [vault, SEED + DEPOSIT] as never),
      'be seeded': ofVault('seed'),
      'take a deposit': ofVault('deposit', [DEPOSIT, PROVER]),
      'tell its holdings': ofVault('holdings'),
      'hand over a part in kind': ofVault('exitInKind', [shares / 2n, PROVER, PROVER, 0]),
      'pay the rest out': ofVault('redeem', [shares / 4n, PROVER, PROVER]),
    };
    const results = await simulate(client, Object.values(calls));
    const of = new Map(Object.keys(calls).map((name, each) => [name, results[each]]));
    for (const [name, result] of of)
      if (result?.status !== '0x1')
        throw new NotDeployable(`with ${active} first, the vault would not ${name}${reasonOf(abi, result)}`);
    const told = <Value>(name: string, functionName: string) =>
      decodeFunctionResult({ abi, functionName, data: of.get(name)?.returnData ?? '0x' }) as Value;
    const [, inProtocol] = told<[bigint, readonly bigint[]]>('tell its holdings', 'holdings');
    if ((inProtocol[index] ?? 0n) === 0n)
      throw new NotDeployable(`${active} would not take a deposit: it would lie idle`);
    const [, handedOver] = told<[bigint, readonly bigint[]]>('hand over a part in kind', 'exitInKind');
    if ((handedOver[index] ?? 0n) === 0n)
      throw new NotDeployable(`${active} would hand nothing over in kind`);
    const paid = told<bigint>('pay the rest out', 'redeem');
    if (paid * 1_000n < (net / 4n) * LEAST_PER_MILLE)
      throw new NotDeployable(`with ${active} first, shares of ${net / 4n} USDC units would bring ${paid}`);
  }
}

/** Transactions on top of each other in the next block, and forgotten. @throws NotDeployable when the node cannot do that */
async function simulate(client: Chain, calls: readonly Call[]): Promise<readonly Result[]> {
  const told = (await client
    .request({
      method: 'eth_simulateV1',
      params: [
        {
          blockStateCalls: [{ stateOverrides: { [MAKER]: { code: MAKER_CODE } }, calls }],
          validation: false,
        },
        'latest',
      ],
    } as never)
    .catch((cause: unknown) => {
      throw new NotDeployable('the node does not simulate (eth_simulateV1), so nothing is proven', { cause });
    })) as readonly { calls: readonly Result[] }[];
  return told[0]?.calls ?? [];
}

function reasonOf(abi: Abi, result: Result | undefined): string {
  try {
    return `: ${decodeErrorResult({ abi, data: result?.returnData ?? '0x' }).errorName}`;
  } catch {
    return '';
  }
}
