/** Where the vault’s funds may be, in the order that its contract counts them. */
export const PROTOCOLS = ['aave', 'compound', 'morpho'] as const;
export type ProtocolName = (typeof PROTOCOLS)[number];
