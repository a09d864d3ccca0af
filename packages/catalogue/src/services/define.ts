/** How the services of this catalogue are declared: by its own sources, and what its parts can do beside those of any fare box. */
import {
  type RunContext as AnyRunContext,
  definersFor,
  type HouseCapabilities,
} from '@farebox/core/service/define';
import type { UpstreamDefinition } from '../upstreams/define.ts';
import { UPSTREAMS, type UpstreamName, type Upstreams } from '../upstreams/index.ts';
import type { LawPageChanges } from './law-page-changes.ts';
import type { Lists } from './listed-parties.ts';
import type { TokenLists } from './listed-tokens.ts';
import type { MapPictures } from './map-pictures.ts';
import type { ReportingDevices } from './reported-devices.ts';

/** The abilities that services may use beside sources, if the operator has configured it. */
export interface Capabilities extends HouseCapabilities {
  lists: Lists;
  tokenLists: TokenLists;
  lawPages: LawPageChanges;
  devices: ReportingDevices;
  pictures: MapPictures;
}

/** The context of a service's `run` that asks these sources. */
export type RunContext<Needed extends UpstreamName> = AnyRunContext<Pick<Upstreams, Needed>, Capabilities>;

/** Make the declaration the default export of `services/<tag>/<path>.ts`. */
export const { defineService } = definersFor<Upstreams, Capabilities>({
  costsMoney: (name) => (UPSTREAMS[name] as UpstreamDefinition<unknown>).costsMoney === true,
});
