/** Reads an EIP-712 message by its types: what whoever holds the signature could do. */
import { type Address, type Hex, hashTypedData, isAddressEqual, type TypedDataDefinition } from 'viem';
import { z } from 'zod';
import type { Act, Goods } from './act.ts';
import { asAddress, asAmount, asBytes, fieldOf } from './call-arguments.ts';
import { type Finding, found } from './finding.ts';
import { PERMIT2, SEAPORTS } from './known-contracts.ts';
import type { Call } from './known-functions.ts';

const NAME = /^[A-Za-z_$][A-Za-z0-9_$]{0,99}$/;
const TYPE = /^[A-Za-z_$][A-Za-z0-9_$]{0,99}(\[\d{0,4}\]){0,24}$/;
const MOST_STRUCTS = 50;
const MOST_FIELDS = 100;
const NATIVE_ITEM = 0n;
const FIRST_NFT_ITEM = 2n;
const MOST_ITEMS = 100;

const word = z.union([z.string().max(80), z.number()]);

/** The form of data that a wallet's `eth_signTypedData_v4` takes, bounded. */
export const typedDataForm = z.object({
  types: z
    .record(
      z.string().regex(NAME, 'must be a name'),
      z
        .array(
          z.object({
            name: z.string().regex(NAME, 'must be a name'),
            type: z.string().regex(TYPE, 'must be a type'),
          }),
        )
        .max(MOST_FIELDS),
    )
    .refine((types) => Object.keys(types).length <= MOST_STRUCTS, `may hold at most ${MOST_STRUCTS} types`)
    .describe('The fields of each type'),
  primaryType: z.string().regex(NAME, 'must be a name').describe('The type of the message'),
  domain: z
    .object({
      name: z.string().max(1_000).optional().describe('Of the application'),
      version: z.string().max(100).optional().describe('Of the application'),
      chainId: word.optional().describe('EIP-155 id'),
      verifyingContract: z.string().max(100).optional().describe('The contract that takes the signature'),
      salt: z.string().max(100).optional().describe('32 bytes in hex'),
    })
    .describe('Whom the signature is for'),
  message: z.record(z.string().max(200), z.unknown()).describe('What is to be signed'),
});
export type TypedData = z.output<typeof typedDataForm>;

export interface SignatureReading {
  acts: Act[];
  findings: Finding[];
  /** Calls that the signature lets somebody make in the signer's name. */
  calls: (Call & { isDelegated: boolean })[];
  /** The form that it was recognized as; null for none. */
  form: string | null;
  /** The hash that is signed (EIP-712), so that it can be compared with what a wallet shows. */
  digest: Hex;
  chainId: bigint | null;
}

type Message = Readonly<Record<string, unknown>>;

interface Sight {
  message: Message;
  contract: Address;
  signer: Address;
}

interface Read {
  acts?: Act[];
  calls?: (Call & { isDelegated: boolean })[];
  findings?: Finding[];
}

interface Form {
  name: string;
  /** The text of `encodeType` of EIP-712; a form with a witness is known by how it begins. */
  type: string;
  isBeginning?: true;
  /** The only contracts that it belongs to. */
  contracts?: readonly Address[];
  read(sight: Sight): Read;
}

/** @throws TypeError in words of our own where it is no message that can be signed */
export function readTypedData(data: TypedData, signer: Address): SignatureReading {
  const digest = digestOf(data);
  const written = encodeType(data);
  const form = FORMS.find(({ type, isBeginning }) =>
    isBeginning === true ? written.startsWith(type) : written === type,
  );
  const domain = signedDomain(data);
  const chainId = domain.chainId === undefined ? null : asAmount(domain.chainId);
  const common = { digest, chainId };
  const findings = [...undeclared(data)];
  if (chainId === null) findings.push(found('no_chain', 'caution', 'domain.chainId'));
  if (form === undefined || domain.verifyingContract === undefined) {
    findings.push(found('unread_signature', 'unknown', 'primaryType'));
    return { ...common, acts: [], calls: [], form: null, findings };
  }
  const contract = asAddress(domain.verifyingContract);
  if (form.contracts?.some((each) => isAddressEqual(each, contract)) === false) {
    findings.push(found('other_contract', 'unknown', 'domain.verifyingContract', contract));
  }
  try {
    const read = form.read({ message: data.message, contract, signer });
    findings.push(...(read.findings ?? []));
    return { ...common, acts: read.acts ?? [], calls: read.calls ?? [], form: form.name, findings };
  } catch {
    findings.push(found('unread_signature', 'unknown', 'message'));
    return { ...common, acts: [], calls: [], form: form.name, findings };
  }
}

function digestOf({ types, primaryType, domain, message }: TypedData): Hex {
  try {
    return hashTypedData({
      types,
      primaryType,
      domain: { ...domain, ...(domain.chainId === undefined ? {} : { chainId: asAmount(domain.chainId) }) },
      message,
    } as unknown as TypedDataDefinition);
  } catch {
    throw new TypeError('does not fit its own types');
  }
}

/** `encodeType` of EIP-712 for the primary type: itself, then those that it refers to, by their names. */
function encodeType({ types, primaryType }: TypedData): string {
  const needed = new Set<string>();
  const waiting = [primaryType];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const fields = types[name];
    if (needed.has(name) || fields === undefined) continue;
    needed.add(name);
    waiting.push(...fields.map(({ type }) => type.replace(/\[.*$/, '')));
  }
  needed.delete(primaryType);
  return [primaryType, ...[...needed].sort()]
    .map(
      (name) =>
        `${name}(${(types[name] ?? []).map(({ type, name: field }) => `${type} ${field}`).join(',')})`,
    )
    .join('');
}

/** The fields of the domain that the signature covers: all, unless the data declares the domain's type itself. */
function signedDomain({ types, domain }: TypedData): TypedData['domain'] {
  const declared = types.EIP712Domain;
  if (declared === undefined) return domain;
  const names = new Set(declared.map(({ name }) => name));
  return Object.fromEntries(Object.entries(domain).filter(([name]) => names.has(name)));
}

/** Fields of message and domain that the types do not have: a wallet may show them, and the signature does not cover them. */
function undeclared(data: TypedData): Finding[] {
  const { types, primaryType, message, domain } = data;
  const signed = signedDomain(data);
  if (Object.keys(domain).some((name) => !Object.hasOwn(signed, name)))
    return [found('undeclared_fields', 'danger', 'domain')];
  const waiting: { type: string; value: unknown; at: string }[] = [
    { type: primaryType, value: message, at: 'message' },
  ];
  let looked = 0;
  for (let next = waiting.pop(); next !== undefined && looked < 1_000; next = waiting.pop()) {
    looked += 1;
    const { type, value, at } = next;
    if (Array.isArray(value)) {
      const inner = type.replace(/\[\d*\]$/, '');
      value.slice(0, MOST_ITEMS).forEach((each: unknown) => {
        waiting.push({ type: inner, value: each, at });
      });
      continue;
    }
    const fields = types[type];
    if (fields === undefined || typeof value !== 'object' || value === null) continue;
    const declared = new Map(fields.map(({ name, type: each }) => [name, each]));
    for (const name of Object.keys(value)) {
      const inner = declared.get(name);
      if (inner === undefined) return [found('undeclared_fields', 'danger', at)];
      waiting.push({ type: inner, value: fieldOf(value, name), at: `${at}.${name}` });
    }
  }
  return [];
}

const address = (message: unknown, name: string) => asAddress(fieldOf(message, name));
const amount = (message: unknown, name: string) => asAmount(fieldOf(message, name));
const bytes = (message: unknown, name: string) => asBytes(fieldOf(message, name));
const list = (message: unknown, name: string): readonly unknown[] => {
  const value = fieldOf(message, name);
  if (!Array.isArray(value) || value.length > MOST_ITEMS) throw new TypeError('no list');
  return value;
};

function approved(
  owner: Address,
  token: Address,
  spender: Address,
  units: bigint | null,
  expiresAtS: bigint | null,
  at = 'message',
): Act {
  if (units === 0n) return { kind: 'revocation', at, by: 'signature', token, spender };
  return {
    kind: 'approval',
    at,
    by: 'signature',
    owner,
    token,
    spender,
    amount: units,
    tokenId: null,
    expiresAtS,
  };
}

/** The owner must be the signer, or the signature is somebody else's business. */
function ownedBy(owner: Address, signer: Address, at: string): Finding[] {
  return isAddressEqual(owner, signer) ? [] : [found('other_signer', 'caution', at, owner)];
}

function authorized(sight: Sight): Read {
  const { message, contract, signer } = sight;
  const from = address(message, 'from');
  const to = address(message, 'to');
  return {
    acts: [
      {
        kind: 'transfer',
        at: 'message',
        by: 'signature',
        token: contract,
        from,
        to,
        amount: amount(message, 'value'),
        mover: from,
        expiresAtS: amount(message, 'validBefore'),
      },
    ],
    findings: ownedBy(from, signer, 'message.from'),
  };
}

function permit2Allowances({ message, signer }: Sight): Read {
  const details = fieldOf(message, 'details');
  const all = Array.isArray(details) ? list(message, 'details') : [details];
  const spender = address(message, 'spender');
  return {
    acts: all.map((each, index) =>
      approved(
        signer,
        address(each, 'token'),
        spender,
        amount(each, 'amount'),
        amount(each, 'expiration'),
        Array.isArray(details) ? `message.details.${index}` : 'message.details',
      ),
    ),
  };
}

function permit2Transfers({ message, signer }: Sight): Read {
  const permitted = fieldOf(message, 'permitted');
  const all = Array.isArray(permitted) ? list(message, 'permitted') : [permitted];
  const [spender, deadline] = [address(message, 'spender'), amount(message, 'deadline')];
  return {
    acts: all.map((each) =>
      approved(
        signer,
        address(each, 'token'),
        spender,
        amount(each, 'amount'),
        deadline,
        'message.permitted',
      ),
    ),
  };
}

const witnessed = (sight: Sight): Read => {
  const { acts = [] } = permit2Transfers(sight);
  return { acts, findings: [found('unread_witness', 'unknown', 'message.witness')] };
};

/** @param item of Seaport: its type says whether it is the coin, a token or of a collection */
function goods(item: unknown): Goods {
  const kind = amount(item, 'itemType');
  return {
    token: kind === NATIVE_ITEM ? null : address(item, 'token'),
    amount:
      amount(item, 'endAmount') < amount(item, 'startAmount')
        ? amount(item, 'endAmount')
        : amount(item, 'startAmount'),
    isNft: kind >= FIRST_NFT_ITEM,
  };
}

function seaportOrder(message: unknown, at: string): Act {
  const maker = address(message, 'offerer');
  const own = list(message, 'consideration').filter((item) =>
    isAddressEqual(address(item, 'recipient'), maker),
  );
  return {
    kind: 'order',
    at,
    by: 'signature',
    maker,
    gives: list(message, 'offer').map(goods),
    gets: own.map(goods),
    expiresAtS: amount(message, 'endTime'),
  };
}

function seaport({ message, signer }: Sight): Read {
  return {
    acts: [seaportOrder(message, 'message')],
    findings: ownedBy(address(message, 'offerer'), signer, 'message.offerer'),
  };
}

/** A tree of orders: each leaf is one, and empty places are filled with orders of nothing. */
function seaportBulk({ message, signer }: Sight): Read {
  const leaves: unknown[] = [fieldOf(message, 'tree')].flat(24);
  if (leaves.length > MOST_ITEMS) throw new TypeError('too many orders');
  const real = leaves.filter((leaf) => list(leaf, 'offer').length > 0);
  return {
    acts: real.map((leaf) => seaportOrder(leaf, 'message.tree')),
    findings: real.flatMap((leaf) => ownedBy(address(leaf, 'offerer'), signer, 'message.tree')),
  };
}

function cowOrder({ message, signer }: Sight): Read {
  const receiver = address(message, 'receiver');
  const gets = { token: address(message, 'buyToken'), amount: amount(message, 'buyAmount'), isNft: false };
  const isOwn = /^0x0{40}$/.test(receiver) || isAddressEqual(receiver, signer);
  return {
    acts: [
      {
        kind: 'order',
        at: 'message',
        by: 'signature',
        maker: signer,
        gives: [
          { token: address(message, 'sellToken'), amount: amount(message, 'sellAmount'), isNft: false },
        ],
        gets: isOwn ? [gets] : [],
        expiresAtS: amount(message, 'validTo'),
      },
    ],
  };
}

function safeTransaction({ message, contract }: Sight): Read {
  const refund = address(message, 'refundReceiver');
  return {
    calls: [
      {
        at: 'message',
        from: contract,
        to: address(message, 'to'),
        value: amount(message, 'value'),
        data: bytes(message, 'data'),
        isDelegated: amount(message, 'operation') !== 0n,
      },
    ],
    findings:
      amount(message, 'gasPrice') > 0n
        ? [found('refund_payment', 'caution', 'message.gasPrice', refund)]
        : [],
  };
}

function forwarded({ message }: Sight): Read {
  const from = address(message, 'from');
  const value = amount(message, 'value');
  return {
    calls: [
      {
        at: 'message',
        from,
        to: address(message, 'to'),
        value,
        data: bytes(message, 'data'),
        isDelegated: false,
      },
    ],
  };
}

function metaTransaction({ message, contract }: Sight): Read {
  const from = address(message, 'from');
  const data = bytes(message, 'functionSignature');
  return { calls: [{ at: 'message', from, to: contract, value: 0n, data, isDelegated: false }] };
}

function userOperation({ message, contract }: Sight): Read {
  const data = bytes(message, 'callData');
  return {
    calls: [
      { at: 'message', from: contract, to: address(message, 'sender'), value: 0n, data, isDelegated: false },
    ],
  };
}

const OFFER_ITEM =
  'OfferItem(uint8 itemType,address token,uint256 identifierOrCriteria,uint256 startAmount,uint256 endAmount)';
const CONSIDERATION_ITEM =
  'ConsiderationItem(uint8 itemType,address token,uint256 identifierOrCriteria,uint256 startAmount,uint256 endAmount,address recipient)';
const ORDER_COMPONENTS =
  'OrderComponents(address offerer,address zone,OfferItem[] offer,ConsiderationItem[] consideration,uint8 orderType,uint256 startTime,uint256 endTime,bytes32 zoneHash,uint256 salt,bytes32 conduitKey,uint256 counter)';
const PERMIT_DETAILS = 'PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)';
const TOKEN_PERMISSIONS = 'TokenPermissions(address token,uint256 amount)';

const FORMS: readonly Form[] = [
  {
    name: 'EIP-2612 permit',
    type: 'Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)',
    read: ({ message, contract, signer }) => ({
      acts: [
        approved(
          address(message, 'owner'),
          contract,
          address(message, 'spender'),
          amount(message, 'value'),
          amount(message, 'deadline'),
        ),
      ],
      findings: ownedBy(address(message, 'owner'), signer, 'message.owner'),
    }),
  },
  {
    name: 'DAI permit',
    type: 'Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)',
    read: ({ message, contract, signer }) => {
      const [holder, expiry] = [address(message, 'holder'), amount(message, 'expiry')];
      const units = fieldOf(message, 'allowed') === false ? 0n : null;
      // DAI takes an expiry of 0 as "never".
      const acts = [
        approved(holder, contract, address(message, 'spender'), units, expiry === 0n ? null : expiry),
      ];
      return { acts, findings: ownedBy(holder, signer, 'message.holder') };
    },
  },
  {
    name: 'ERC-721 permit',
    type: 'Permit(address spender,uint256 tokenId,uint256 nonce,uint256 deadline)',
    read: ({ message, contract, signer }) => ({
      acts: [
        {
          kind: 'approval',
          at: 'message',
          by: 'signature',
          owner: signer,
          token: contract,
          spender: address(message, 'spender'),
          amount: 1n,
          tokenId: amount(message, 'tokenId'),
          expiresAtS: amount(message, 'deadline'),
        },
      ],
    }),
  },
  {
    name: 'Permit2 allowance',
    type: `PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)${PERMIT_DETAILS}`,
    contracts: [PERMIT2],
    read: permit2Allowances,
  },
  {
    name: 'Permit2 allowances',
    type: `PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)${PERMIT_DETAILS}`,
    contracts: [PERMIT2],
    read: permit2Allowances,
  },
  {
    name: 'Permit2 transfer',
    type: `PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)${TOKEN_PERMISSIONS}`,
    contracts: [PERMIT2],
    read: permit2Transfers,
  },
  {
    name: 'Permit2 transfers',
    type: `PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline)${TOKEN_PERMISSIONS}`,
    contracts: [PERMIT2],
    read: permit2Transfers,
  },
  {
    name: 'Permit2 transfer with a condition',
    type: 'PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,',
    isBeginning: true,
    contracts: [PERMIT2],
    read: witnessed,
  },
  {
    name: 'Permit2 transfers with a condition',
    type: 'PermitBatchWitnessTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline,',
    isBeginning: true,
    contracts: [PERMIT2],
    read: witnessed,
  },
  {
    name: 'EIP-3009 transfer',
    type: 'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
    read: authorized,
  },
  {
    name: 'EIP-3009 receipt',
    type: 'ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
    read: authorized,
  },
  {
    name: 'EIP-3009 cancellation',
    type: 'CancelAuthorization(address authorizer,bytes32 nonce)',
    read: ({ contract }) => ({
      acts: [{ kind: 'harmless', at: 'message', by: 'signature', contract, what: 'cancelled authorization' }],
    }),
  },
  {
    name: 'Seaport order',
    type: `${ORDER_COMPONENTS}${CONSIDERATION_ITEM}${OFFER_ITEM}`,
    contracts: SEAPORTS,
    read: seaport,
  },
  {
    name: 'Seaport orders',
    type: 'BulkOrder(OrderComponents[2]',
    isBeginning: true,
    contracts: SEAPORTS,
    read: seaportBulk,
  },
  {
    name: 'CoW order',
    type: 'Order(address sellToken,address buyToken,address receiver,uint256 sellAmount,uint256 buyAmount,uint32 validTo,bytes32 appData,uint256 feeAmount,string kind,bool partiallyFillable,string sellTokenBalance,string buyTokenBalance)',
    contracts: ['0x9008D19f58AAbD9eD0D60971565AA8510560ab41'],
    read: cowOrder,
  },
  {
    name: 'Safe transaction',
    type: 'SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)',
    read: safeTransaction,
  },
  {
    name: 'forwarded call',
    type: 'ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data)',
    read: forwarded,
  },
  {
    name: 'forwarded call',
    type: 'ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,bytes data)',
    read: forwarded,
  },
  {
    name: 'forwarded call',
    type: 'MetaTransaction(uint256 nonce,address from,bytes functionSignature)',
    read: metaTransaction,
  },
  {
    name: 'user operation',
    type: 'PackedUserOperation(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits,uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData)',
    read: userOperation,
  },
];
