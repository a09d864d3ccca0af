import { answered } from '../http/operation.ts';
import { CREDIT_TIERS } from './credit-tiers.ts';

/** What descriptions say of credit, whichever way it is bought. */
export const TIER = { enum: CREDIT_TIERS.map(({ amountUsd }) => amountUsd) };
export const BOUGHT = answered('Bought', { apiKey: 'fbx_live_…', creditsAdded: 10 });
