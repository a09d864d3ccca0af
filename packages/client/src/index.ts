export type { Approval, CallOptions, Farebox, FareboxOptions, Purchased, SpendingLimits } from './client.ts';
export { createFarebox } from './client.ts';
export { FareboxError, type FieldProblem } from './errors.ts';
export { fromOpenApi, type OpenApiClient } from './open-api.ts';
export type { Wallet } from './payer.ts';
export type { Receipt } from './receipt.ts';
export type { ServiceName, Services } from './services.ts';
export { memoryStore, type Store } from './store.ts';
