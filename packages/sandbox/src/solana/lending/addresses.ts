/** The addresses on mainnet of the lending program, of its main market and of the market's USDC reserve. */
import { address } from '@solana/kit';

export const LENDING_PROGRAM = address('KLend2g3cP87fffoy8q1mQqGKjrxjC8boSyAYavgmjD');
export const MARKET_ACCOUNT = address('7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF');
/** The address derived from the program (PDA) with which the program signs for the market. */
export const MARKET_AUTHORITY = address('9DrvZvyWh1HuAoZxvYWMvkf2XCzryCpGgHqrMjyDWpmo');
export const MARKET_AUTHORITY_BUMP = 248;
export const RESERVE_ACCOUNT = address('D6q6wuQSrifJKZYpR1M8R4YawnLDtDsMmWM1NbBmgJ59');
export const LIQUIDITY_VAULT = address('Bgq7trRgVMeq33yt235zM2onQ4bRDBsY5EWiTetF4qw6');
export const FEE_VAULT = address('BbDUrk1bVtSixgQsPLBJFZEF7mwGstnD5joA1WzYvYFX');
export const COLLATERAL_MINT = address('B8V6WVjPxW1UGwVDfxH2d2r8SyT4cqn7dQRK6XneVa7D');
export const COLLATERAL_VAULT = address('3DzjXRfxRm6iejfyyMynR4tScddaanrePJ1NJU2XnPPL');
export const INSTRUCTIONS_SYSVAR = address('Sysvar1nstructions1111111111111111111111111');
