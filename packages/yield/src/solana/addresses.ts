/**
 * Where everything of the portal is on Solana's mainnet: the lending program, its main market and the market's USDC
 * reserve. What is read from the chain is compared with these, and nothing is built where they differ.
 */
import { address } from '@solana/kit';

export const TOKEN_PROGRAM = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA');
export const ATA_PROGRAM = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL');
export const SYSTEM_PROGRAM = address('11111111111111111111111111111111');
export const COMPUTE_BUDGET_PROGRAM = address('ComputeBudget111111111111111111111111111111');
export const INSTRUCTIONS_SYSVAR = address('Sysvar1nstructions1111111111111111111111111');

export const USDC_MINT = address('EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v');
export const USDC_DECIMALS = 6;

export const LENDING_PROGRAM = address('KLend2g3cP87fffoy8q1mQqGKjrxjC8boSyAYavgmjD');
export const LENDING_MARKET = address('7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF');
/** Signs for the market: it owns the vaults and mints the collateral token. */
export const MARKET_AUTHORITY = address('9DrvZvyWh1HuAoZxvYWMvkf2XCzryCpGgHqrMjyDWpmo');
export const USDC_RESERVE = address('D6q6wuQSrifJKZYpR1M8R4YawnLDtDsMmWM1NbBmgJ59');
/** Holds the USDC that is not lent out. */
export const LIQUIDITY_VAULT = address('Bgq7trRgVMeq33yt235zM2onQ4bRDBsY5EWiTetF4qw6');
export const FEE_VAULT = address('BbDUrk1bVtSixgQsPLBJFZEF7mwGstnD5joA1WzYvYFX');
/** Mint of the collateral token ("cToken", 6 decimals), which a deposit mints to the wallet. */
export const COLLATERAL_MINT = address('B8V6WVjPxW1UGwVDfxH2d2r8SyT4cqn7dQRK6XneVa7D');
/** Holds the collateral of those who borrow; wallets never use it. */
export const COLLATERAL_VAULT = address('3DzjXRfxRm6iejfyyMynR4tScddaanrePJ1NJU2XnPPL');

/** The genesis hash of mainnet-beta: a node of another chain has another. */
export const GENESIS_HASH = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d';
