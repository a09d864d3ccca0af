/** Keys of EVM chains that this process does not hold. A signature is believed only once it recovers to the key's address. */
import { secp256k1 } from '@noble/curves/secp256k1';
import { hexToBytes, keccak256, recoverAddress } from 'viem';
import type { EvmSignature, Signer } from './signer.ts';
import { addressNamedIn, type KeyElsewhere, placeOfKey, type Signature } from './signing-place.ts';

type Hex = `0x${string}`;

/** Such a key, with its address in hex. */
export type RemoteKey = KeyElsewhere & `${string}@${Hex}`;

export function remoteSigner(key: RemoteKey): Pick<Signer, 'address' | 'signatureOf'> {
  const { place } = placeOfKey(key);
  const address = addressOfRemote(key);
  return {
    address,
    async signatureOf(unsigned: Hex): Promise<EvmSignature> {
      const digest = keccak256(unsigned);
      const { r, s } = inLowerHalf(await place.ecdsa(unsigned, hexToBytes(digest)));
      const signature = { r: hexOf(r), s: hexOf(s) };
      for (const yParity of [0, 1]) {
        const by = await recoverAddress({ hash: digest, signature: { ...signature, yParity } }).catch(
          () => '',
        );
        if (by.toLowerCase() !== address) continue;
        return { ...signature, yParity };
      }
      throw new Error(`the signer of ${address} signed with another key, or something else`);
    },
  };
}

/** The address of a key elsewhere, in small letters. */
export function addressOfRemote(key: RemoteKey): Hex {
  return addressNamedIn(key).toLowerCase() as Hex;
}

/** Chains take only one of the two signatures that there are for everything (EIP-2). KMS answers either. */
function inLowerHalf({ r, s }: Signature): Signature {
  const { n } = secp256k1.CURVE;
  return { r, s: s > n / 2n ? n - s : s };
}

function hexOf(value: bigint): Hex {
  return `0x${value.toString(16).padStart(64, '0')}`;
}
