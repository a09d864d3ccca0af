/** The key that a signer process is given: of EVM chains and Tempo, or of Solana. */
import { type HeldKey, heldEvmKey } from '../../relayer/signer-process.ts';
import { keptHere } from './solana-key.ts';
import { refusalOfMessage } from './solana-signed.ts';

/**
 * Reads a private key.
 *
 * @param text `0x` and 64 hex digits for EVM chains; base58 of 64 bytes or a JSON list of them for Solana
 * @throws Error without anything of the key in it
 */
export function heldKey(text: string): HeldKey {
  return text.startsWith('0x') ? heldEvmKey(text as `0x${string}`) : heldSolanaKey(text);
}

function heldSolanaKey(text: string): HeldKey {
  const key = keptHere(text);
  const { address } = key;
  return {
    address,
    async answer(question) {
      const { message } = question as { message: string };
      const bytes = new Uint8Array(Buffer.from(message, 'base64'));
      const refusal = refusalOfMessage(bytes, address);
      if (refusal !== null) return { refusal };
      return { signed: { signature: Buffer.from(await key.sign(bytes)).toString('base64') } };
    },
  };
}
