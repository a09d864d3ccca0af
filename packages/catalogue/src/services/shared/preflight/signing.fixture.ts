/** Transactions and typed data to sign, for tests: malicious and benign ones of each kind. */
import {
  type Abi,
  type Address,
  concatHex,
  encodeFunctionData,
  encodePacked,
  type Hex,
  maxUint256,
  numberToHex,
  pad,
  parseAbi,
  size,
  zeroAddress,
} from 'viem';
import { PERMIT2 } from '../../../preflight/known-contracts.ts';

/** The addresses that the fixtures speak of. */
export interface Cast {
  signer: Address;
  /** A key without code. */
  thief: Address;
  friend: Address;
  /** Contracts, of which one has published its source. */
  unverified: Address;
  verified: Address;
  usdc: Address;
  nft: Address;
  safe: Address;
}

export interface Fixture {
  name: string;
  /** `danger`: must be found. `fine`: must not be called a danger. */
  is: 'danger' | 'fine';
  /** A pattern that must stand among the findings. */
  pattern?: string;
  body: Record<string, unknown>;
}

const ABI = parseAbi([
  'function approve(address,uint256)',
  'function transfer(address,uint256)',
  'function transferFrom(address,address,uint256)',
  'function increaseAllowance(address,uint256)',
  'function setApprovalForAll(address,bool)',
  'function multicall(bytes[])',
  'struct Call { address target; bool allowFailure; bytes callData; }',
  'function aggregate3(Call[])',
  'struct Execution { address to; uint256 value; bytes data; }',
  'function executeBatch(Execution[])',
  'function upgradeTo(address)',
  'function upgradeToAndCall(address,bytes)',
  'function transferOwnership(address)',
  'function grantRole(bytes32,address)',
  'function SecurityUpdate() payable',
  'function claim() payable',
  'function deposit() payable',
  'function multiSend(bytes)',
  'function swapOwner(address,address,address)',
  'function enableModule(address)',
  'function execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)',
]);
const PERMIT2_ABI = parseAbi(['function approve(address,address,uint160,uint48)']);

export function call(functionName: string, ...args: readonly unknown[]): Hex {
  return encodeFunctionData({ abi: ABI as Abi, functionName, args });
}

const MULTICALL3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11';
const MULTI_SEND: Address = '0x38869bf66a61cF6bDB996A6aE40D5853Fd43B526';
const ROUTER: Address = '0x2626664c2603336E57B271c5C0b26F421741e481';
const LATER = 4_000_000_000;
/** An hour after the present of tests. */
const SOON = 1_795_243_000;
const uint = (name: string, bits = 256) => ({ name, type: `uint${bits}` });
const addr = (name: string) => ({ name, type: 'address' });

export const TYPES = {
  permit: [addr('owner'), addr('spender'), uint('value'), uint('nonce'), uint('deadline')],
  dai: [addr('holder'), addr('spender'), uint('nonce'), uint('expiry'), { name: 'allowed', type: 'bool' }],
  details: [addr('token'), uint('amount', 160), uint('expiration', 48), uint('nonce', 48)],
  permissions: [addr('token'), uint('amount')],
  authorization: [
    addr('from'),
    addr('to'),
    uint('value'),
    uint('validAfter'),
    uint('validBefore'),
    { name: 'nonce', type: 'bytes32' },
  ],
  offer: [
    uint('itemType', 8),
    addr('token'),
    uint('identifierOrCriteria'),
    uint('startAmount'),
    uint('endAmount'),
  ],
  order: [
    addr('offerer'),
    addr('zone'),
    { name: 'offer', type: 'OfferItem[]' },
    { name: 'consideration', type: 'ConsiderationItem[]' },
    uint('orderType', 8),
    uint('startTime'),
    uint('endTime'),
    { name: 'zoneHash', type: 'bytes32' },
    uint('salt'),
    { name: 'conduitKey', type: 'bytes32' },
    uint('counter'),
  ],
  safe: [
    addr('to'),
    uint('value'),
    { name: 'data', type: 'bytes' },
    uint('operation', 8),
    uint('safeTxGas'),
    uint('baseGas'),
    uint('gasPrice'),
    addr('gasToken'),
    addr('refundReceiver'),
    uint('nonce'),
  ],
};

const HASH = pad('0x1');

export function typed(
  contract: Address,
  primaryType: string,
  types: Record<string, { name: string; type: string }[]>,
  message: Record<string, unknown>,
) {
  return {
    typedData: {
      types,
      primaryType,
      domain: { name: 'X', chainId: 8453, verifyingContract: contract },
      message,
    },
  };
}

export function permit({ signer, usdc }: Cast, spender: Address, value: bigint, deadline = SOON) {
  const message = { owner: signer, spender, value: String(value), nonce: 0, deadline };
  return typed(usdc, 'Permit', { Permit: TYPES.permit }, message);
}

function permitSingle({ usdc }: Cast, spender: Address, amount: bigint, contract: Address = PERMIT2) {
  const types = {
    PermitSingle: [{ name: 'details', type: 'PermitDetails' }, addr('spender'), uint('sigDeadline')],
    PermitDetails: TYPES.details,
  };
  const details = { token: usdc, amount: String(amount), expiration: SOON, nonce: 0 };
  return typed(contract, 'PermitSingle', types, { details, spender, sigDeadline: SOON });
}

export function seaport({ signer, nft }: Cast, price: bigint, to: Address = signer) {
  const types = {
    OrderComponents: TYPES.order,
    OfferItem: TYPES.offer,
    ConsiderationItem: [...TYPES.offer, addr('recipient')],
  };
  const item = {
    token: zeroAddress,
    identifierOrCriteria: 0,
    startAmount: String(price),
    endAmount: String(price),
  };
  return typed('0x0000000000000068F116a894984e2DB1123eB395', 'OrderComponents', types, {
    offerer: signer,
    zone: zeroAddress,
    offer: [{ itemType: 2, token: nft, identifierOrCriteria: 7, startAmount: 1, endAmount: 1 }],
    consideration: price === 0n ? [] : [{ itemType: 0, ...item, recipient: to }],
    orderType: 0,
    startTime: 0,
    endTime: SOON,
    zoneHash: HASH,
    salt: 1,
    conduitKey: HASH,
    counter: 0,
  });
}

function safeTx({ safe }: Cast, to: Address, data: Hex, operation: number, value = 0n) {
  return typed(
    safe,
    'SafeTx',
    { SafeTx: TYPES.safe },
    {
      to,
      value: String(value),
      data,
      operation,
      safeTxGas: 0,
      baseGas: 0,
      gasPrice: 0,
      gasToken: zeroAddress,
      refundReceiver: zeroAddress,
      nonce: 0,
    },
  );
}

export function authorization(
  { signer, usdc }: Cast,
  to: Address,
  validBefore: number,
  primaryType = 'TransferWithAuthorization',
) {
  const message = { from: signer, to, value: '10000', validAfter: 0, validBefore, nonce: HASH };
  return typed(usdc, primaryType, { [primaryType]: TYPES.authorization }, message);
}

export const tx = (to: Address, data: Hex = '0x', value = 0n) => ({
  transaction: { to, data, value: String(value) },
});

const packed = (operation: number, to: Address, data: Hex) =>
  encodePacked(
    ['uint8', 'address', 'uint256', 'uint256', 'bytes'],
    [operation, to, 0n, BigInt(size(data)), data],
  );

const exec = (to: Address, data: Hex, operation: number) =>
  call('execTransaction', to, 0n, data, operation, 0n, 0n, 0n, zeroAddress, zeroAddress, '0x');

const nested = (data: Hex, depth: number): Hex =>
  depth === 0 ? data : call('multicall', [nested(data, depth - 1)]);

/** The set that the rules were written with. */
export function tuned(cast: Cast): Fixture[] {
  const { signer, thief, friend, unverified, verified, usdc, nft, safe } = cast;
  const opened = encodeFunctionData({
    abi: PERMIT2_ABI,
    functionName: 'approve',
    args: [usdc, ROUTER, 5n, SOON],
  });
  return [
    {
      name: 'permit of all to a key',
      is: 'danger',
      pattern: 'approval_to_account',
      body: permit(cast, thief, maxUint256),
    },
    {
      name: 'permit of all to an unpublished contract',
      is: 'danger',
      pattern: 'approval_to_unverified',
      body: permit(cast, unverified, maxUint256),
    },
    {
      name: 'permit of some to a published contract',
      is: 'fine',
      pattern: 'approval',
      body: permit(cast, verified, 5_000_000n),
    },
    {
      name: 'Permit2 to a key',
      is: 'danger',
      pattern: 'approval_to_account',
      body: permitSingle(cast, thief, 1n),
    },
    {
      name: 'Permit2 to a router',
      is: 'fine',
      pattern: 'approval',
      body: permitSingle(cast, ROUTER, 5_000_000n),
    },
    { name: 'EIP-3009 payment', is: 'fine', pattern: 'transfer', body: authorization(cast, friend, SOON) },
    {
      name: 'EIP-3009 to the token itself',
      is: 'danger',
      pattern: 'transfer_to_token',
      body: authorization(cast, usdc, SOON),
    },
    { name: 'Seaport order for nothing', is: 'danger', pattern: 'order_gives_away', body: seaport(cast, 0n) },
    {
      name: 'Seaport order that pays another',
      is: 'danger',
      pattern: 'order_gives_away',
      body: seaport(cast, 10n ** 18n, thief),
    },
    { name: 'Seaport order with a price', is: 'fine', pattern: 'order', body: seaport(cast, 10n ** 18n) },
    {
      name: 'Safe transaction by DELEGATECALL',
      is: 'danger',
      pattern: 'delegatecall_to_unknown',
      body: safeTx(cast, unverified, '0x', 1),
    },
    {
      name: 'Safe transaction that approves a key',
      is: 'danger',
      pattern: 'approval_to_account',
      body: safeTx(cast, usdc, call('approve', thief, 1n), 0),
    },
    {
      name: 'Safe transaction that sends a little',
      is: 'fine',
      pattern: 'transfer',
      body: safeTx(cast, friend, '0x', 0, 1n),
    },
    {
      name: 'approval of all to a key',
      is: 'danger',
      pattern: 'approval_to_account',
      body: tx(usdc, call('approve', thief, maxUint256)),
    },
    {
      name: 'approval of some to Permit2',
      is: 'fine',
      pattern: 'approval',
      body: tx(usdc, call('approve', PERMIT2, 5_000_000n)),
    },
    {
      name: 'approval of all to Multicall3',
      is: 'danger',
      pattern: 'approval_to_open_executor',
      body: tx(usdc, call('approve', MULTICALL3, maxUint256)),
    },
    { name: 'an allowance taken back', is: 'fine', body: tx(usdc, call('approve', thief, 0n)) },
    {
      name: 'setApprovalForAll to a key',
      is: 'danger',
      pattern: 'approval_to_account',
      body: tx(nft, call('setApprovalForAll', thief, true)),
    },
    {
      name: 'setApprovalForAll to a published contract',
      is: 'fine',
      pattern: 'operator_for_all',
      body: tx(nft, call('setApprovalForAll', verified, true)),
    },
    {
      name: 'setApprovalForAll taken back',
      is: 'fine',
      body: tx(nft, call('setApprovalForAll', thief, false)),
    },
    {
      name: 'multicall that hides an approval',
      is: 'danger',
      pattern: 'approval_to_account',
      body: tx(usdc, call('multicall', [call('approve', thief, 1n)])),
    },
    {
      name: 'multicall of harmless calls',
      is: 'fine',
      body: tx(verified, call('multicall', [call('approve', verified, 0n)])),
    },
    {
      name: 'DELEGATECALL of a Safe',
      is: 'danger',
      pattern: 'delegatecall_to_unknown',
      body: tx(safe, exec(unverified, '0x12345678', 1)),
    },
    {
      name: 'MultiSend of a Safe that sends a little',
      is: 'fine',
      pattern: 'transfer',
      body: tx(safe, exec(MULTI_SEND, call('multiSend', packed(0, usdc, call('transfer', friend, 5n))), 1)),
    },
    {
      name: 'upgrade to an unpublished contract',
      is: 'danger',
      pattern: 'upgrade_to_unknown',
      body: tx(verified, call('upgradeTo', unverified)),
    },
    {
      name: 'upgrade to a published contract',
      is: 'fine',
      pattern: 'upgrade',
      body: tx(verified, call('upgradeTo', verified)),
    },
    {
      name: 'ownership to a key',
      is: 'danger',
      pattern: 'owner_change',
      body: tx(verified, call('transferOwnership', thief)),
    },
    {
      name: 'ownership to the signer',
      is: 'fine',
      pattern: 'owner_change',
      body: tx(verified, call('transferOwnership', signer)),
    },
    {
      name: 'claim that takes money',
      is: 'danger',
      pattern: 'bait_function',
      body: tx(unverified, call('claim'), 10n ** 17n),
    },
    {
      name: 'the coin wrapped',
      is: 'fine',
      body: tx('0x4200000000000000000000000000000000000006', call('deposit'), 10n ** 15n),
    },
    { name: 'a plain payment', is: 'fine', pattern: 'transfer', body: tx(friend, '0x', 10n ** 15n) },
    {
      name: 'a token sent',
      is: 'fine',
      pattern: 'transfer',
      body: tx(usdc, call('transfer', friend, 5_000n)),
    },
    {
      name: 'an allowance of Permit2 to a router',
      is: 'fine',
      pattern: 'approval',
      body: tx(PERMIT2, opened),
    },
    {
      name: 'EIP-7702 to an unknown contract',
      is: 'danger',
      pattern: 'account_delegation',
      body: { transaction: { to: signer, authorizationList: [{ chainId: 8453, address: unverified }] } },
    },
    {
      name: 'EIP-7702 taken back',
      is: 'fine',
      pattern: 'account_delegation',
      body: { transaction: { to: signer, authorizationList: [{ chainId: 8453, address: zeroAddress }] } },
    },
    {
      name: 'an address that looks like the own',
      is: 'danger',
      pattern: 'lookalike_address',
      body: tx(usdc, call('transfer', lookalikeOf(signer), 5_000n)),
    },
  ];
}

function lookalikeOf(address: Address): Address {
  return `0x${address.slice(2, 6)}${'ab'.repeat(16)}${address.slice(-4)}`.toLowerCase() as Address;
}

/** A set apart: it was run for the first time when the rules stood, and no rule was changed for it. */
export function heldBack(cast: Cast): Fixture[] {
  const { signer, thief, friend, unverified, verified, usdc, nft, safe } = cast;
  const transferFrom = call('transferFrom', signer, thief, 5n);
  const batchTypes = {
    PermitBatch: [{ name: 'details', type: 'PermitDetails[]' }, addr('spender'), uint('sigDeadline')],
    PermitDetails: TYPES.details,
  };
  const details = [usdc, nft].map((token) => ({ token, amount: '1', expiration: LATER, nonce: 0 }));
  const transferTypes = {
    PermitTransferFrom: [
      { name: 'permitted', type: 'TokenPermissions' },
      addr('spender'),
      uint('nonce'),
      uint('deadline'),
    ],
    TokenPermissions: TYPES.permissions,
  };
  const permitted = { token: usdc, amount: '5000000' };
  const batchTransfer = {
    PermitBatchTransferFrom: [
      { name: 'permitted', type: 'TokenPermissions[]' },
      addr('spender'),
      uint('nonce'),
      uint('deadline'),
    ],
    TokenPermissions: TYPES.permissions,
  };
  return [
    {
      name: 'DAI permit to a key',
      is: 'danger',
      body: typed(
        usdc,
        'Permit',
        { Permit: TYPES.dai },
        { holder: signer, spender: thief, nonce: 0, expiry: 0, allowed: true },
      ),
    },
    {
      name: 'DAI permit taken back',
      is: 'fine',
      body: typed(
        usdc,
        'Permit',
        { Permit: TYPES.dai },
        { holder: signer, spender: thief, nonce: 0, expiry: 0, allowed: false },
      ),
    },
    {
      name: 'Permit2 of several to a key',
      is: 'danger',
      body: typed(PERMIT2, 'PermitBatch', batchTypes, { details, spender: thief, sigDeadline: LATER }),
    },
    {
      name: 'Permit2 transfer to a key',
      is: 'danger',
      body: typed(PERMIT2, 'PermitTransferFrom', transferTypes, {
        permitted,
        spender: thief,
        nonce: 0,
        deadline: SOON,
      }),
    },
    {
      name: 'Permit2 transfer to a published contract',
      is: 'fine',
      body: typed(PERMIT2, 'PermitTransferFrom', transferTypes, {
        permitted,
        spender: verified,
        nonce: 0,
        deadline: SOON,
      }),
    },
    {
      name: 'Permit2 transfers to a key',
      is: 'danger',
      body: typed(PERMIT2, 'PermitBatchTransferFrom', batchTransfer, {
        permitted: [permitted],
        spender: thief,
        nonce: 0,
        deadline: SOON,
      }),
    },
    { name: 'Seaport order for a wei', is: 'danger', body: seaport(cast, 1n) },
    { name: 'permit for a lookalike', is: 'danger', body: permit(cast, lookalikeOf(signer), 5n) },
    { name: 'Safe module', is: 'danger', body: safeTx(cast, safe, call('enableModule', unverified), 0) },
    { name: 'Safe token payment', is: 'fine', body: safeTx(cast, usdc, call('transfer', friend, 5n), 0) },
    {
      name: 'increaseAllowance to a key',
      is: 'danger',
      body: tx(usdc, call('increaseAllowance', thief, 5n)),
    },
    {
      name: 'setApprovalForAll to an unpublished contract',
      is: 'danger',
      body: tx(nft, call('setApprovalForAll', unverified, true)),
    },
    {
      name: 'multicall in multicall in multicall',
      is: 'danger',
      body: tx(usdc, nested(call('increaseAllowance', thief, 5n), 3)),
    },
    {
      name: 'aggregate with a standing allowance',
      is: 'danger',
      body: tx(
        MULTICALL3,
        call('aggregate3', [{ target: usdc, allowFailure: true, callData: transferFrom }]),
      ),
    },
    {
      name: 'Permit2 allowance to a key',
      is: 'danger',
      body: tx(
        PERMIT2,
        encodeFunctionData({
          abi: PERMIT2_ABI,
          functionName: 'approve',
          args: [usdc, thief, 2n ** 160n - 1n, LATER],
        }),
      ),
    },
    {
      name: 'upgradeToAndCall to nothing',
      is: 'danger',
      body: tx(verified, call('upgradeToAndCall', thief, '0x')),
    },
    {
      name: 'default admin to a key',
      is: 'danger',
      body: tx(verified, call('grantRole', numberToHex(0n, { size: 32 }), thief)),
    },
    { name: 'a lesser role', is: 'fine', body: tx(verified, call('grantRole', HASH, friend)) },
    { name: 'SecurityUpdate', is: 'danger', body: tx(unverified, call('SecurityUpdate'), 10n ** 18n) },
    {
      name: 'MultiSend that hides an approval',
      is: 'danger',
      body: tx(
        safe,
        exec(
          MULTI_SEND,
          call(
            'multiSend',
            concatHex([
              packed(0, usdc, call('transfer', friend, 1n)),
              packed(0, usdc, call('approve', thief, 9n)),
            ]),
          ),
          1,
        ),
      ),
    },
    {
      name: 'MultiSend that hides DELEGATECALL',
      is: 'danger',
      body: tx(safe, exec(MULTI_SEND, call('multiSend', packed(1, unverified, '0x12345678')), 1)),
    },
    {
      name: 'swapped owner of a Safe',
      is: 'danger',
      body: tx(safe, exec(safe, call('swapOwner', friend, signer, thief), 0)),
    },
    {
      name: 'batch of a smart account that approves a key',
      is: 'danger',
      body: tx(signer, call('executeBatch', [{ to: usdc, value: 0n, data: call('approve', thief, 1n) }])),
    },
    {
      name: 'EIP-7702 on every chain',
      is: 'danger',
      body: { transaction: { to: signer, authorizationList: [{ chainId: 0, address: thief }] } },
    },
    {
      name: 'EIP-3009 receipt',
      is: 'fine',
      body: authorization(cast, friend, SOON, 'ReceiveWithAuthorization'),
    },
    {
      name: 'more of the coin wrapped',
      is: 'fine',
      body: tx('0x4200000000000000000000000000000000000006', call('deposit'), 10n ** 16n),
    },
  ];
}
