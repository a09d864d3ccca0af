/** Contracts that many know, by their addresses. What stands here is recognized; it is no recommendation. */
import { type Address, zeroAddress } from 'viem';

/** Permit2, at one address on every chain that has it. https://github.com/Uniswap/permit2 */
export const PERMIT2: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
/** Seaport 1.4 to 1.6. https://github.com/ProjectOpenSea/seaport */
export const SEAPORTS: readonly Address[] = [
  '0x00000000000001ad428e4906aE43D8F9852d0dD6',
  '0x00000000000000ADc04C56Bf30aC9d3c0aAF14dC',
  '0x0000000000000068F116a894984e2DB1123eB395',
];

/**
 * `spender`: takes only what its caller gave it leave to. `executor`: calls whatever anybody asks it to, so that nobody should let
 * it take anything. `library`: made to be run by DELEGATECALL, and reads as a list of calls.
 */
type Role = 'spender' | 'executor' | 'library' | 'delegate';

export interface KnownContract {
  name: string;
  role: Role;
}

/**
 * Each address was found again on 29 November 2026. In published packages: `@uniswap/sdk-core` 7.19.4 and
 * `@uniswap/universal-router-sdk` 5.13.0 (routers), `@cowprotocol/contracts` 1.8.0, `@opensea/seaport-js` 4.3.0 (conduit, Seaport 1.5 and
 * 1.6), `@safe-global/safe-deployments` 1.37.56, `@metamask/delegation-deployments` 2.0.0, and viem (Multicall3, EntryPoints). In the source
 * of several public repositories: Permit2, Seaport 1.4, LI.FI, Circle's version 2, Calibur, Coinbase's proxy and Ambire.
 */
const KNOWN: Readonly<Record<string, KnownContract>> = Object.fromEntries(
  (
    [
      [PERMIT2, 'Permit2', 'spender'],
      ['0x1E0049783F008A0085193E00003D00cd54003c71', 'OpenSea conduit', 'spender'],
      ...SEAPORTS.map((address) => [address, 'Seaport', 'spender'] as const),
      ['0x68b3465833fb72A70ecDF485E0e4C7bD8665Fc45', 'Uniswap SwapRouter02', 'spender'],
      ['0x2626664c2603336E57B271c5C0b26F421741e481', 'Uniswap SwapRouter02', 'spender'],
      ['0x66a9893cC07D91D95644AEDD05D03f95e1dBA8Af', 'Uniswap Universal Router', 'spender'],
      ['0x6fF5693b99212Da76ad316178A184AB56D299b43', 'Uniswap Universal Router', 'spender'],
      ['0xC92E8bdf79f0507f65a392b0ab4667716BFE0110', 'CoW Protocol vault relayer', 'spender'],
      ['0x9008D19f58AAbD9eD0D60971565AA8510560ab41', 'CoW Protocol settlement', 'spender'],
      ['0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE', 'LI.FI diamond', 'spender'],
      ['0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d', 'Circle TokenMessenger v2', 'spender'],
      ['0x81D40F21F12A8F0E3252Bccb954D722d4c464B64', 'Circle MessageTransmitter v2', 'spender'],
      ['0xcA11bde05977b3631167028862bE2a173976CA11', 'Multicall3', 'executor'],
      ['0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789', 'EntryPoint 0.6', 'executor'],
      ['0x0000000071727De22E5E9d8BAf0edAc6f37da032', 'EntryPoint 0.7', 'executor'],
      ['0x38869bf66a61cF6bDB996A6aE40D5853Fd43B526', 'Safe MultiSend 1.4.1', 'library'],
      ['0x9641d764fc13c8B624c04430C7356C1C7C8102e2', 'Safe MultiSendCallOnly 1.4.1', 'library'],
      ['0xA238CBeb142c10Ef7Ad8442C6D1f9E89e07e7761', 'Safe MultiSend 1.3.0', 'library'],
      ['0x40A2aCCbd92BCA938b02010E17A5b8929b49130D', 'Safe MultiSendCallOnly 1.3.0', 'library'],
      ['0x63c0c19a282a1B52b07dD5a65b58948A07DAE32B', 'MetaMask delegator', 'delegate'],
      ['0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00', 'Uniswap Calibur', 'delegate'],
      ['0x7702cb554e6bFb442cb743A7dF23154544a7176C', 'Coinbase EIP-7702 proxy', 'delegate'],
      ['0x5A7FC11397E9a8AD41BF10bf13F22B0a63f96f6d', 'Ambire account', 'delegate'],
    ] satisfies readonly (readonly [Address, string, Role])[]
  ).map(([address, name, role]) => [address.toLowerCase(), { name, role }]),
);

export function knownContract(address: string): KnownContract | null {
  return KNOWN[address.toLowerCase()] ?? null;
}

const ENDS = 4;

/**
 * The known address that another imitates: the same first and last four digits, and different ones between. Vanity addresses that
 * begin with zeros are many, so a start of zeros alone is no likeness.
 *
 * @param others further addresses that could be imitated, such as the signer's own
 */
export function imitatedBy(address: string, others: readonly string[]): string | null {
  const ends = (written: string) => {
    const digits = written.toLowerCase().slice(2);
    return `${digits.slice(0, ENDS)}…${digits.slice(-ENDS)}`;
  };
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  if (same(address, zeroAddress)) return null;
  const candidates = [...others, ...Object.keys(KNOWN)];
  if (candidates.some((each) => same(each, address))) return null;
  return candidates.find((each) => ends(each) === ends(address)) ?? null;
}
