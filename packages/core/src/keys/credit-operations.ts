import { answered } from '../http/operation.ts';
import { CREDIT_TIERS } from './credit-tiers.ts';

/** Descriptions that all ways to buy credit share. */
export const TIER = { enum: CREDIT_TIERS.map(({ amountUsd }) => amountUsd) };
export const BOUGHT = answered('Bought', { apiKey: 'fbx_live_…', creditsAdded: 10 });
