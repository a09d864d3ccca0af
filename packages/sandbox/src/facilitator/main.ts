/**
 * Runs the facilitator as a process of its own. From the environment: FACILITATOR_PORT (4022 if absent), EVM_RPC_URL
 * with EVM_KEYS (private keys, separated by commas), SOLANA_RPC_URL with SOLANA_FEE_PAYER (64 bytes as 128
 * hexadecimal digits). A chain without an RPC URL is not offered.
 */
import { type Hex, isHex } from 'viem';
import { startFacilitator } from './facilitator.ts';

const DEFAULT_PORT = 4022;

const { FACILITATOR_PORT, EVM_RPC_URL, EVM_KEYS, SOLANA_RPC_URL, SOLANA_FEE_PAYER } = process.env;
const facilitator = await startFacilitator({
  evm: EVM_RPC_URL ? { rpcUrl: EVM_RPC_URL, privateKeys: readKeys(EVM_KEYS ?? '') } : null,
  solana: SOLANA_RPC_URL
    ? { rpcUrl: SOLANA_RPC_URL, feePayerSecretKey: readFeePayer(SOLANA_FEE_PAYER ?? '') }
    : null,
  port: Number(FACILITATOR_PORT || DEFAULT_PORT),
});
process.stdout.write(`sandbox facilitator at ${facilitator.url}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // A wait for a node's answer must not keep the process alive.
  process.once(signal, () => void facilitator.stop().finally(() => process.exit(0)));
}

function readKeys(text: string): Hex[] {
  return text.split(',').map((part) => {
    const key = part.trim();
    if (!isHex(key) || key.length !== 66)
      throw new Error('EVM_KEYS must be private keys, separated by commas');
    return key;
  });
}

function readFeePayer(text: string): Uint8Array {
  if (!/^[0-9a-fA-F]{128}$/.test(text)) throw new Error('SOLANA_FEE_PAYER must be 128 hexadecimal digits');
  return new Uint8Array(Buffer.from(text, 'hex'));
}
