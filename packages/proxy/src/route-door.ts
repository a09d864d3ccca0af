/** The door at which routes are sold at their own addresses, and the rails that pay there. */
import { makeChallenge } from '@farebox/core/paid-call/challenge';
import { type Door, x402Door } from '@farebox/core/paid-call/door';
import type { Sales } from '@farebox/core/paid-call/part';
import type { Rail } from '@farebox/core/paid-call/rail';
import type { House } from '@farebox/core/part';
import { askedByMpp } from '@farebox/core/rails/mpp/asked';
import type { MppRail } from '@farebox/core/rails/mpp/rail';

export interface RouteRails {
  sales: Sales;
  /** Null where MPP is off. */
  mpp: MppRail | null;
  x402: Rail;
  credits: Rail;
}

/** @param about.hasRecipes false: the services stand in no document of this server */
export function routeDoor(
  { baseUrl, shop, sandbox }: House,
  { sales, mpp, x402, credits }: RouteRails,
  { hasRecipes = true }: { hasRecipes?: boolean } = {},
): { door: Door; rails: readonly Rail[] } {
  const about = { baseUrl, seller: shop.name, sandbox, trialsOpen: sales.promisesTrials, hasRecipes };
  const inTheHouse = x402Door((quote) => makeChallenge(quote, [x402, credits], about));
  return {
    door: withMpp({ ...inTheHouse, prefix: '' }, mpp),
    rails: [...(mpp === null ? [] : [mpp.rail]), x402, credits],
  };
}

/** A door whose 402 also asks for an MPP credential, where MPP is on. */
function withMpp(door: Door, mpp: MppRail | null): Door {
  if (mpp === null) return door;
  return {
    ...door,
    challenge(quote) {
      const usual = door.challenge(quote);
      return {
        async answer(request, refused) {
          const { headers, body } = await usual.answer(request, refused);
          return { headers: { ...headers, ...(await askedByMpp(mpp, quote, request)) }, body };
        },
      };
    },
  };
}
