/** The functions that are read: what each does with its arguments, or which calls it wraps. */
import { type Address, type Hex, hexToBigInt, isAddressEqual, size, sliceHex } from 'viem';
import type { Act, Transfer } from './act.ts';
import {
  addressAt,
  amountAt,
  asAddress,
  asAmount,
  asBytes,
  bytesAt,
  fieldOf,
  listAt,
  type Values,
} from './call-arguments.ts';

/** A call as its contract gets it. */
export interface Call {
  at: string;
  from: Address;
  to: Address;
  /** Wei. */
  value: bigint;
  data: Hex;
}

/** The meaning of a call: acts of its own, and calls that it makes. */
export interface Meaning {
  acts?: Act[];
  inner?: (Call & { isDelegated?: boolean })[];
  /** The account for which it acts belongs to whoever signs. */
  ours?: Address;
  isCut?: boolean;
}

type Reader = (values: Values, call: Call) => Meaning;

const MOST_INNER = 256;
const harmless =
  (what: string): Reader =>
  (_, { at, to }) => ({
    acts: [{ kind: 'harmless', at, by: 'call', contract: to, what }],
  });

const bait: Reader = (_, { at, to, value }) => ({
  acts: [{ kind: 'bait', at, by: 'call', contract: to, called: 'a function of that kind', value }],
});

function approval(token: Address, spender: Address, amount: bigint | null, call: Call): Meaning {
  const { at, from } = call;
  if (amount === 0n) return { acts: [{ kind: 'revocation', at, by: 'call', token, spender }] };
  const ends = { tokenId: null, expiresAtS: null };
  return { acts: [{ kind: 'approval', at, by: 'call', owner: from, token, spender, amount, ...ends }] };
}

function moves(token: Address | null, from: Address, to: Address, amount: bigint, call: Call): Transfer {
  return {
    kind: 'transfer',
    at: call.at,
    by: 'call',
    token,
    from,
    to,
    amount,
    mover: call.from,
    expiresAtS: null,
  };
}

const moved =
  (from: number | null, to: number, amount: number): Reader =>
  (values, call) => ({
    acts: [
      moves(
        call.to,
        from === null ? call.from : addressAt(values, from),
        addressAt(values, to),
        amountAt(values, amount),
        call,
      ),
    ],
  });

/** An approval that a signature in the data makes, for whoever signed that. */
const permitted =
  (owner: number, spender: number, amount: number | null): Reader =>
  (values, call) =>
    approval(call.to, addressAt(values, spender), amount === null ? null : amountAt(values, amount), {
      ...call,
      from: addressAt(values, owner),
    });

const owner =
  (place: number): Reader =>
  (values, { at, to }) => ({
    acts: [{ kind: 'owner', at, by: 'call', contract: to, to: addressAt(values, place) }],
  });

const control =
  (what: string, place: number | null, grave: boolean): Reader =>
  (values, { at, to }) => ({
    acts: [
      {
        kind: 'control',
        at,
        by: 'call',
        contract: to,
        to: place === null ? null : addressAt(values, place),
        what,
        grave,
      },
    ],
  });

const upgrade =
  (place: number, contract: number | null = null): Reader =>
  (values, { at, to }) => ({
    acts: [
      {
        kind: 'upgrade',
        at,
        by: 'call',
        contract: contract === null ? to : addressAt(values, contract),
        implementation: addressAt(values, place),
      },
    ],
  });

/** The contract calls itself with each of some data, and keeps who called. */
const multicall =
  (place: number): Reader =>
  (values, call) => ({
    inner: bounded(listAt(values, place)).map((data, index) => ({
      at: `${call.at}.${index}`,
      from: call.from,
      to: call.to,
      value: 0n,
      data: asBytes(data),
    })),
    isCut: listAt(values, place).length > MOST_INNER,
  });

/** The contract makes each of some calls by itself. @param isOurs whether it is an account that its caller rules */
const batch =
  (place: number, isOurs: boolean): Reader =>
  (values, call) => ({
    inner: bounded(listAt(values, place)).map((each, index) =>
      innerCall(each, `${call.at}.${index}`, call.to),
    ),
    isCut: listAt(values, place).length > MOST_INNER,
    ...(isOurs ? { ours: call.to } : {}),
  });

function innerCall(each: unknown, at: string, from: Address): Call {
  const to = fieldOf(each, 'target') ?? fieldOf(each, 'to');
  return {
    at,
    from,
    to: asAddress(to),
    value: asAmount(fieldOf(each, 'value') ?? 0n),
    data: asBytes(fieldOf(each, 'callData') ?? fieldOf(each, 'data') ?? '0x'),
  };
}

/** Lists of targets, of values and of data beside each other. */
const batchOfLists =
  (hasValues: boolean): Reader =>
  (values, call) => {
    const targets = listAt(values, 0);
    const datas = listAt(values, hasValues ? 2 : 1);
    return {
      ours: call.to,
      isCut: targets.length > MOST_INNER || datas.length !== targets.length,
      inner: bounded(targets).map((target, index) => ({
        at: `${call.at}.${index}`,
        from: call.to,
        to: asAddress(target),
        value: hasValues ? asAmount(listAt(values, 1)[index] ?? 0n) : 0n,
        data: asBytes(datas[index] ?? '0x'),
      })),
    };
  };

/** A smart account makes one call. */
const executed: Reader = (values, call) => ({
  ours: call.to,
  inner: [
    {
      at: `${call.at}.0`,
      from: call.to,
      to: addressAt(values, 0),
      value: amountAt(values, 1),
      data: bytesAt(values, 2),
    },
  ],
});

/** A Safe makes one call, or runs other code as its own (operation 1). */
const safeExecuted: Reader = (values, call) => {
  const inner = executed(values, call).inner ?? [];
  const isDelegated = amountAt(values, 3) !== 0n;
  const [gasPrice, refundReceiver] = [values[6], values[8]];
  const pays = typeof gasPrice === 'bigint' && gasPrice > 0n && typeof refundReceiver === 'string';
  const acts: Act[] = pays
    ? [
        {
          kind: 'control',
          at: call.at,
          by: 'call',
          contract: call.to,
          to: asAddress(refundReceiver),
          what: 'refund',
          grave: false,
        },
      ]
    : [];
  return { ours: call.to, inner: inner.map((each) => ({ ...each, isDelegated })), acts };
};

/** Safe's MultiSend: operation (1), to (20), value (32), length (32), data, one after another. */
const multiSend: Reader = (values, call) => {
  const packed = bytesAt(values, 0);
  const inner: (Call & { isDelegated?: boolean })[] = [];
  let offset = 0;
  while (offset < size(packed) && inner.length < MOST_INNER) {
    if (offset + 85 > size(packed)) return { inner, isCut: true };
    const length = hexToBigInt(sliceHex(packed, offset + 53, offset + 85));
    if (length > BigInt(size(packed) - offset - 85)) return { inner, isCut: true };
    const end = offset + 85 + Number(length);
    inner.push({
      at: `${call.at}.${inner.length}`,
      from: call.from,
      to: asAddress(sliceHex(packed, offset + 1, offset + 21)),
      value: hexToBigInt(sliceHex(packed, offset + 21, offset + 53)),
      data: end === offset + 85 ? '0x' : sliceHex(packed, offset + 85, end),
      isDelegated: sliceHex(packed, offset, offset + 1) !== '0x00',
    });
    offset = end;
  }
  return { inner, isCut: offset < size(packed) };
};

/** EntryPoint: each operation calls its sender with its data. */
const userOperations: Reader = (values, call) => ({
  inner: bounded(listAt(values, 0)).map((each, index) => ({
    at: `${call.at}.${index}`,
    from: call.to,
    to: asAddress(fieldOf(each, 'sender')),
    value: 0n,
    data: asBytes(fieldOf(each, 'callData')),
  })),
  isCut: listAt(values, 0).length > MOST_INNER,
});

/** Permit2: an allowance by the owner's own call. */
const permit2Approve: Reader = (values, call) => {
  const { acts = [] } = approval(addressAt(values, 0), addressAt(values, 1), amountAt(values, 2), call);
  const expiresAtS = amountAt(values, 3);
  return { acts: acts.map((act) => (act.kind === 'approval' ? { ...act, expiresAtS } : act)) };
};

/** Permit2: allowances by a signature in the data. */
const permit2Permit: Reader = (values, call) => {
  const details = fieldOf(values[1], 'details');
  const all = Array.isArray(details) ? details : [details];
  const spender = asAddress(fieldOf(values[1], 'spender'));
  return {
    acts: bounded(all).flatMap((each): Act[] => {
      const amount = asAmount(fieldOf(each, 'amount'));
      const grant = approval(asAddress(fieldOf(each, 'token')), spender, amount, {
        ...call,
        from: addressAt(values, 0),
      });
      const expiresAtS = asAmount(fieldOf(each, 'expiration'));
      return (grant.acts ?? []).map((act) => (act.kind === 'approval' ? { ...act, expiresAtS } : act));
    }),
    isCut: all.length > MOST_INNER,
  };
};

const permit2Moves: Reader = (values, call) => ({
  acts: bounded(listAt(values, 0)).map((each) =>
    moves(
      asAddress(fieldOf(each, 'token')),
      asAddress(fieldOf(each, 'from')),
      asAddress(fieldOf(each, 'to')),
      asAmount(fieldOf(each, 'amount')),
      call,
    ),
  ),
  isCut: listAt(values, 0).length > MOST_INNER,
});

/** Permit2: one transfer by a signature in the data. */
const permit2Transfer: Reader = (values, call) => ({
  acts: [
    moves(
      asAddress(fieldOf(fieldOf(values[0], 'permitted'), 'token')),
      addressAt(values, 2),
      asAddress(fieldOf(values[1], 'to')),
      asAmount(fieldOf(values[1], 'requestedAmount')),
      call,
    ),
  ],
});

const operatorForAll: Reader = (values, { at, from, to }) => {
  const operator = addressAt(values, 0);
  return values[1] === true
    ? { acts: [{ kind: 'operator', at, by: 'call', owner: from, collection: to, operator }] }
    : { acts: [{ kind: 'revocation', at, by: 'call', token: to, spender: operator }] };
};

/** A deposit or a burning: for somebody else it leaves the signer. */
const forAnother =
  (what: string, receiver: number, amount: number): Reader =>
  (values, call) => {
    const to = addressAt(values, receiver);
    if (isAddressEqual(to, call.from)) return harmless(what)(values, call);
    return { acts: [moves(call.to, call.from, to, amountAt(values, amount), call)] };
  };

/** ERC-4626: shares of another owner are redeemed by an allowance. */
const redeemed =
  (receiver: number, ownerAt: number): Reader =>
  (values, call) => {
    const [to, from] = [addressAt(values, receiver), addressAt(values, ownerAt)];
    if (isAddressEqual(to, call.from) && isAddressEqual(from, call.from))
      return harmless('withdrawal')(values, call);
    return { acts: [moves(call.to, from, to, amountAt(values, 0), call)] };
  };

/** Circle's bridge burns tokens here, and mints them elsewhere to an address of 32 bytes. */
const burnedForBridge: Reader = (values, call) => {
  const recipient = asAddress(sliceHex(bytesAt(values, 2), 12));
  const token = addressAt(values, 3);
  return isAddressEqual(recipient, call.from)
    ? harmless('bridge')(values, call)
    : { acts: [moves(token, call.from, recipient, amountAt(values, 0), call)] };
};

/** The readers by the signatures of their functions, as `parseAbi` takes them. */
export const READERS: Readonly<Record<string, Reader>> = {
  'function transfer(address to, uint256 amount)': moved(null, 0, 1),
  'function transferFrom(address from, address to, uint256 amount)': moved(0, 1, 2),
  'function safeTransferFrom(address from, address to, uint256 id)': moved(0, 1, 2),
  'function safeTransferFrom(address from, address to, uint256 id, bytes data)': moved(0, 1, 2),
  'function safeTransferFrom(address from, address to, uint256 id, uint256 amount, bytes data)': moved(
    0,
    1,
    3,
  ),
  'function safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] amounts, bytes data)': (
    values,
    call,
  ) => ({
    acts: bounded(listAt(values, 3)).map((amount) =>
      moves(call.to, addressAt(values, 0), addressAt(values, 1), asAmount(amount), call),
    ),
  }),
  'function approve(address spender, uint256 amount)': (values, call) =>
    approval(call.to, addressAt(values, 0), amountAt(values, 1), call),
  'function increaseAllowance(address spender, uint256 amount)': (values, call) =>
    approval(call.to, addressAt(values, 0), amountAt(values, 1), call),
  'function increaseApproval(address spender, uint256 amount)': (values, call) =>
    approval(call.to, addressAt(values, 0), amountAt(values, 1), call),
  'function decreaseAllowance(address spender, uint256 amount)': harmless('smaller allowance'),
  'function setApprovalForAll(address operator, bool approved)': operatorForAll,
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)':
    permitted(0, 1, 2),
  'function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature)':
    permitted(0, 1, 2),
  'function permit(address holder, address spender, uint256 nonce, uint256 expiry, bool allowed, uint8 v, bytes32 r, bytes32 s)':
    permitted(0, 1, null),
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)':
    moved(0, 1, 2),
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)':
    moved(0, 1, 2),
  'function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)':
    moved(0, 1, 2),
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)':
    harmless('cancelled authorization'),
  // The wrapped coin, vaults and lending.
  'function deposit()': harmless('deposit'),
  'function withdraw(uint256 amount)': harmless('withdrawal'),
  'function deposit(uint256 assets, address receiver)': forAnother('deposit', 1, 0),
  'function mint(uint256 shares, address receiver)': forAnother('deposit', 1, 0),
  'function withdraw(uint256 assets, address receiver, address owner)': redeemed(1, 2),
  'function redeem(uint256 shares, address receiver, address owner)': redeemed(1, 2),
  'function supply(address asset, uint256 amount, address onBehalfOf, uint16 referralCode)': forAnother(
    'deposit',
    2,
    1,
  ),
  'function depositForBurn(uint256 amount, uint32 domain, bytes32 recipient, address token)': burnedForBridge,
  'function depositForBurn(uint256 amount, uint32 domain, bytes32 recipient, address token, bytes32 caller, uint256 maxFee, uint32 threshold)':
    burnedForBridge,
  // Permit2.
  'function approve(address token, address spender, uint160 amount, uint48 expiration)': permit2Approve,
  'function permit(address owner, ((address token, uint160 amount, uint48 expiration, uint48 nonce) details, address spender, uint256 sigDeadline) permitSingle, bytes signature)':
    permit2Permit,
  'function permit(address owner, ((address token, uint160 amount, uint48 expiration, uint48 nonce)[] details, address spender, uint256 sigDeadline) permitBatch, bytes signature)':
    permit2Permit,
  'function transferFrom(address from, address to, uint160 amount, address token)': (values, call) => ({
    acts: [
      moves(addressAt(values, 3), addressAt(values, 0), addressAt(values, 1), amountAt(values, 2), call),
    ],
  }),
  'function transferFrom((address from, address to, uint160 amount, address token)[] details)': permit2Moves,
  'function permitTransferFrom(((address token, uint256 amount) permitted, uint256 nonce, uint256 deadline) permit, (address to, uint256 requestedAmount) details, address owner, bytes signature)':
    permit2Transfer,
  'function lockdown((address token, address spender)[] approvals)': harmless('revocations'),
  // Calls in calls.
  'function multicall(bytes[] data)': multicall(0),
  'function multicall(uint256 deadline, bytes[] data)': multicall(1),
  'function multicall(bytes32 previousBlockhash, bytes[] data)': multicall(1),
  'function aggregate((address target, bytes callData)[] calls)': batch(0, false),
  'function tryAggregate(bool requireSuccess, (address target, bytes callData)[] calls)': batch(1, false),
  'function blockAndAggregate((address target, bytes callData)[] calls)': batch(0, false),
  'function tryBlockAndAggregate(bool requireSuccess, (address target, bytes callData)[] calls)': batch(
    1,
    false,
  ),
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls)': batch(0, false),
  'function aggregate3Value((address target, bool allowFailure, uint256 value, bytes callData)[] calls)':
    batch(0, false),
  'function execute(address to, uint256 value, bytes data)': executed,
  'function execute((address to, uint256 value, bytes data)[] calls)': batch(0, true),
  'function executeBatch((address to, uint256 value, bytes data)[] calls)': batch(0, true),
  'function executeBatch(address[] targets, uint256[] values, bytes[] data)': batchOfLists(true),
  'function executeBatch(address[] targets, bytes[] data)': batchOfLists(false),
  'function multiSend(bytes transactions)': multiSend,
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures)':
    safeExecuted,
  'function execTransactionFromModule(address to, uint256 value, bytes data, uint8 operation)': safeExecuted,
  'function handleOps((address sender, uint256 nonce, bytes initCode, bytes callData, bytes32 accountGasLimits, uint256 preVerificationGas, bytes32 gasFees, bytes paymasterAndData, bytes signature)[] ops, address beneficiary)':
    userOperations,
  // Control of contracts and accounts.
  'function transferOwnership(address newOwner)': owner(0),
  'function setOwner(address newOwner)': owner(0),
  'function changeOwner(address newOwner)': owner(0),
  'function changeAdmin(address newAdmin)': owner(0),
  'function setPendingAdmin(address newAdmin)': owner(0),
  'function renounceOwnership()': control('renounced', null, false),
  'function acceptOwnership()': harmless('accepted control'),
  'function grantRole(bytes32 role, address account)': (values, call) =>
    control('role', 1, hexToBigInt(bytesAt(values, 0)) === 0n)(values, call),
  'function revokeRole(bytes32 role, address account)': control('role', null, false),
  'function renounceRole(bytes32 role, address account)': control('role', null, false),
  'function upgradeTo(address implementation)': upgrade(0),
  'function upgradeToAndCall(address implementation, bytes data)': upgrade(0),
  'function setImplementation(address implementation)': upgrade(0),
  'function changeMasterCopy(address implementation)': upgrade(0),
  'function upgrade(address proxy, address implementation)': upgrade(1, 0),
  'function upgradeAndCall(address proxy, address implementation, bytes data)': upgrade(1, 0),
  'function addOwnerWithThreshold(address owner, uint256 threshold)': control('signer', 0, true),
  'function swapOwner(address previous, address oldOwner, address newOwner)': control('signer', 2, true),
  'function removeOwner(address previous, address owner, uint256 threshold)': control('signer', null, false),
  'function changeThreshold(uint256 threshold)': control('threshold', null, false),
  'function enableModule(address module)': control('module', 0, true),
  'function disableModule(address previous, address module)': harmless('removed module'),
  'function setGuard(address guard)': control('guard', 0, true),
  'function setFallbackHandler(address handler)': control('handler', 0, true),
  // Names under which thieves ask for money.
  'function claim()': bait,
  'function Claim()': bait,
  'function claimReward()': bait,
  'function claimRewards()': bait,
  'function ClaimReward()': bait,
  'function connect()': bait,
  'function Connect()': bait,
  'function connectWallet()': bait,
  'function verify()': bait,
  'function airdrop()': bait,
  'function swap()': bait,
  'function SecurityUpdate()': bait,
  'function securityUpdate()': bait,
  'function NetworkMerge()': bait,
  'function networkMerge()': bait,
};

function bounded(list: readonly unknown[]): readonly unknown[] {
  return list.slice(0, MOST_INNER);
}
