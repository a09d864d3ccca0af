import { connectRpc } from '../chain-rpc/json-rpc.ts';
import { ownerOf } from '../custody/owner.ts';
import type { Configured } from '../declared.ts';
import type { House, Part } from '../part.ts';
import { evmGas } from '../relayer/evm-gas.ts';
import type { GasTanks } from '../relayer/gas-tanks.ts';
import { createRelayer } from '../relayer/relayer.ts';
import { senderOf } from '../relayer/sender.ts';
import { addressOf } from '../relayer/sign.ts';
import { IDENTITY } from './declared.ts';
import { createRegistrar } from './registrar.ts';
import { ERC8004_IDENTITY_REGISTRY } from './registry-abi.ts';

export { IDENTITY };

/** Base: where the registry is. */
const CHAIN_ID = 8453;
const REGISTRATION_TIMEOUT_MS = 15_000;
/** More than the longest registration file uses: its 4,096 bytes in storage are 128 words of 22,100 each. */
const REGISTRATION_GAS = 3_500_000n;
/** A key that cannot pay for so many takes no more of them on. */
const LEAST_REGISTRATIONS = 3n;

const CAPABILITY = { name: 'identities', setBy: 'IDENTITY_REGISTRAR_KEY' };

/**
 * Who registers ERC-8004 identities on Base. Without a key that pays the gas nothing of it is there.
 *
 * @param needs.rpcUrl the node of Base; null: nothing of it is there either
 */
export function openIdentity(
  house: House,
  { secrets }: Configured<typeof IDENTITY.variables>,
  { gas, rpcUrl }: { gas: GasTanks; rpcUrl: string | null },
): Part {
  const { registrarKey: key } = secrets.reveal();
  if (rpcUrl === null || key === null)
    return { name: 'identity', capabilities: [{ ...CAPABILITY, configured: false }] };
  const { nowMs } = house;
  const { sql } = house.pools;
  const rpc = connectRpc(rpcUrl, { timeoutMs: 5_000 });
  const network = `eip155:${CHAIN_ID}`;
  const tank = gas.open({
    network,
    duty: 'register',
    token: { symbol: 'ETH', decimals: 18 },
    addresses: [addressOf(key)],
    source: evmGas({ sql, rpc, network, gasEach: REGISTRATION_GAS, nowMs }),
    least: (cost) => LEAST_REGISTRATIONS * cost,
  });
  const relayer = createRelayer({ sql, rpc, network, chainId: CHAIN_ID, keys: [key], tank, nowMs });
  const identities = createRegistrar({
    sql,
    sender: senderOf(relayer, REGISTRATION_TIMEOUT_MS),
    chainId: CHAIN_ID,
    registry: ERC8004_IDENTITY_REGISTRY,
    nowMs,
  });
  return {
    name: 'identity',
    capabilities: [
      {
        ...CAPABILITY,
        configured: true,
        unable: () => (tank.isAble ? null : 'our key for registrations lacks the gas'),
        forPayer: (proof) => identities.paidBy(ownerOf(proof)),
      },
    ],
    resume: () => relayer.resume(),
    close: rpc.close,
  };
}
