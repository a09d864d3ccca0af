import { type Hex, toFunctionSelector } from 'viem';

/** The power of a function's caller, judged by the function's name and parameters. */
export type Power = 'mint' | 'blacklist' | 'fees' | 'pause' | 'limits' | 'upgrade';

/** Signatures used by published tokens. Another name for the same function is not recognized. */
const SIGNATURES: Readonly<Record<Power, readonly string[]>> = {
  mint: [
    'mint(address,uint256)',
    'mint(uint256)',
    'mintTo(address,uint256)',
    'issue(uint256)',
    'batchMint(address[],uint256[])',
    'ownerMint(uint256)',
    'ownerMint(address,uint256)',
    'increaseSupply(uint256)',
    'configureMinter(address,uint256)',
    'addMinter(address)',
    'setMinter(address)',
    'setMinter(address,bool)',
  ],
  blacklist: [
    'blacklist(address)',
    'blackList(address)',
    'addBlackList(address)',
    'addBlacklist(address)',
    'addToBlacklist(address)',
    'blacklistAddress(address,bool)',
    'blacklist(address,bool)',
    'setBlacklist(address,bool)',
    'setBlackList(address,bool)',
    'updateBlacklist(address,bool)',
    'setBlacklisted(address,bool)',
    'denylist(address)',
    'addToDenylist(address)',
    'freeze(address)',
    'freezeAccount(address,bool)',
    'setBot(address,bool)',
    'setBots(address[])',
    'setBots(address[],bool)',
    'addBots(address[])',
    'blockBots(address[])',
    'delBot(address)',
    'isBlacklisted(address)',
    'isBlackListed(address)',
    'destroyBlackFunds(address)',
  ],
  fees: [
    'setFee(uint256)',
    'setFees(uint256,uint256)',
    'setFees(uint256,uint256,uint256)',
    'setTax(uint256)',
    'setTaxes(uint256,uint256)',
    'setTaxFee(uint256)',
    'setTaxFeePercent(uint256)',
    'setLiquidityFeePercent(uint256)',
    'setBuyFee(uint256)',
    'setSellFee(uint256)',
    'setBuyTax(uint256)',
    'setSellTax(uint256)',
    'updateFees(uint256,uint256)',
    'updateBuyFees(uint256,uint256,uint256)',
    'updateSellFees(uint256,uint256,uint256)',
    'setParams(uint256,uint256)',
    'excludeFromFee(address)',
    'excludeFromFees(address,bool)',
    'reduceFee(uint256)',
  ],
  pause: [
    'pause()',
    'unpause()',
    'setPaused(bool)',
    'pauseTrading()',
    'enableTrading()',
    'openTrading()',
    'setTradingEnabled(bool)',
    'setTrading(bool)',
    'stop()',
  ],
  limits: [
    'setMaxTxAmount(uint256)',
    'setMaxTxPercent(uint256)',
    'setMaxWallet(uint256)',
    'setMaxWalletSize(uint256)',
    'updateMaxTxnAmount(uint256)',
    'updateMaxWalletAmount(uint256)',
    'setCooldownEnabled(bool)',
    'removeLimits()',
  ],
  upgrade: [
    'upgradeTo(address)',
    'upgradeToAndCall(address,bytes)',
    'setImplementation(address)',
    'changeAdmin(address)',
    'diamondCut((address,uint8,bytes4[])[],address,bytes)',
  ],
};

/** Each signature by the four bytes with which a call names it. */
const BY_SELECTOR: ReadonlyMap<Hex, { power: Power; signature: string }> = new Map(
  Object.entries(SIGNATURES).flatMap(([power, signatures]) =>
    signatures.map((signature) => [toFunctionSelector(signature), { power: power as Power, signature }]),
  ),
);

/** The functions among `selectors` by what they are known to do, as signatures. @param selectors `0x` and 8 digits */
export function powersOf(selectors: readonly string[]): Record<Power, string[]> {
  const found: Record<Power, string[]> = {
    mint: [],
    blacklist: [],
    fees: [],
    pause: [],
    limits: [],
    upgrade: [],
  };
  for (const selector of selectors) {
    const known = BY_SELECTOR.get(selector as Hex);
    if (known !== undefined) found[known.power].push(known.signature);
  }
  return found;
}
