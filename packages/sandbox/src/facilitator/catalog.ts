/**
 * The catalog of what is for sale (extension `bazaar`): a facilitator learns of a resource from the payments for it
 * that it settles, as far as the payer passed on what the seller declared.
 */
import { createHash } from 'node:crypto';
import type { PaymentRequirements } from '@x402/core/types';
import {
  type DiscoveredResource,
  type DiscoveryResource,
  type DiscoveryResourcesResponse,
  extractDiscoveryInfo,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { fieldsOf, type PaymentRequest } from './payment-request.ts';

const MAX_RESOURCES = 2_000;
const MAX_OFFERS_EACH = 20;
const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;
const MAX_REASON_CHARACTERS = 300;
const MAX_CHECKED = 100;

/** What the header EXTENSION-RESPONSES says under `bazaar`. */
export type BazaarStatus =
  | { status: 'success' | 'processing' }
  | { status: 'rejected'; rejectedReason: string };

/** A payment's declaration of its resource: null if it has none, and a text that says why if it cannot be read. */
export type Declaration = DiscoveredResource | string | null;

export interface Catalog {
  /** Reads what a payment declares about the resource that it pays for. */
  read(request: PaymentRequest): Declaration;
  /** Adds a resource, or updates its entry. */
  enter(declared: DiscoveredResource, requirements: PaymentRequirements): void;
  /**
   * Lists resources by the query of GET /discovery/resources (type, payTo, scheme, network, extensions, limit 1 to
   * 100, offset), the latest first; a text says what is wrong with the query.
   */
  list(query: Record<string, unknown>): DiscoveryResourcesResponse | string;
}

/**
 * A reader of what payments declare about the resources that they pay for. Most payments for a resource declare the same,
 * and the check compiles the schema in it, so the latest verdicts are kept.
 */
function createDeclarationReader(): (request: PaymentRequest) => Declaration {
  /** What is wrong with a declaration, null when nothing is, by its digest. */
  const checked = new Map<string, string | null>();

  function faultOf(declared: object): string | null {
    const { info, schema } = fieldsOf(declared);
    const digest = createHash('sha256')
      .update(JSON.stringify([info, schema]))
      .digest('base64');
    const known = checked.get(digest);
    if (known !== undefined) return known;
    const fault = check(declared);
    checked.set(digest, fault);
    const oldest = checked.keys().next().value;
    if (checked.size > MAX_CHECKED && oldest !== undefined) checked.delete(oldest);
    return fault;
  }

  return ({ x402Version, payload, requirements }) => {
    if (x402Version === 2) {
      const extension = payload.extensions?.bazaar;
      if (extension === undefined) return null;
      if (typeof extension !== 'object' || extension === null) return 'bazaar is no object';
      const fault = faultOf(extension);
      if (fault !== null) return fault;
    }
    try {
      return extractDiscoveryInfo(payload, requirements, false);
    } catch {
      return 'the resource is no absolute URL';
    }
  };
}

/** Looks whether a declaration is one. @returns what is wrong with it; null when nothing is */
function check(declared: object): string | null {
  const { info, schema } = fieldsOf(declared);
  const spec = validateDiscoveryExtensionSpec({ info, schema });
  if (!spec.valid) return reasonOf(spec.errors);
  // The schema in the extension comes from the payer or the seller. It may be no schema at all, which this check reports.
  const own = validateDiscoveryExtension(declared as Parameters<typeof validateDiscoveryExtension>[0]);
  return own.valid ? null : reasonOf(own.errors);
}

/** Opens an empty catalog; it is kept in memory only. */
export function openCatalog(nowMs: () => number): Catalog {
  /** In the order of their last payment. */
  const resources = new Map<string, DiscoveryResource>();

  return {
    read: createDeclarationReader(),

    enter(declared, requirements) {
      const key = `${declared.resourceUrl} ${'toolName' in declared ? declared.toolName : declared.method}`;
      const known = resources.get(key);
      const others = (known?.accepts ?? []).filter(
        ({ scheme, network, asset }) =>
          scheme !== requirements.scheme || network !== requirements.network || asset !== requirements.asset,
      );
      const { resourceUrl, discoveryInfo, x402Version, description, mimeType } = declared;
      const { serviceName, tags, iconUrl, extensions } = declared;
      resources.delete(key);
      resources.set(key, {
        resource: resourceUrl,
        type: discoveryInfo.input.type,
        x402Version,
        accepts: [requirements, ...others].slice(0, MAX_OFFERS_EACH),
        lastUpdated: new Date(nowMs()).toISOString(),
        ...(description !== undefined && { description }),
        ...(mimeType !== undefined && { mimeType }),
        ...(serviceName !== undefined && { serviceName }),
        ...(tags !== undefined && { tags }),
        ...(iconUrl !== undefined && { iconUrl }),
        ...(extensions !== undefined && { extensions }),
      });
      const oldest = resources.keys().next().value;
      if (resources.size > MAX_RESOURCES && oldest !== undefined) resources.delete(oldest);
    },

    list({ type, payTo, scheme, network, extensions, limit: limitText, offset: offsetText }) {
      const limit = Number(limitText ?? DEFAULT_LIMIT);
      const offset = Number(offsetText ?? 0);
      if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
        return `limit must be 1 to ${MAX_LIMIT}`;
      if (!Number.isInteger(offset) || offset < 0) return 'offset must be 0 or more';
      const found = [...resources.values()]
        .reverse()
        .filter(
          (resource) =>
            (type === undefined || resource.type === type) &&
            (extensions === undefined || Object.hasOwn(resource.extensions ?? {}, String(extensions))) &&
            resource.accepts.some(
              (offer) =>
                (payTo === undefined || offer.payTo.toLowerCase() === String(payTo).toLowerCase()) &&
                (scheme === undefined || offer.scheme === scheme) &&
                (network === undefined || offer.network === network),
            ),
        );
      return {
        x402Version: 2,
        items: found.slice(offset, offset + limit),
        pagination: { limit, offset, total: found.length },
      };
    },
  };
}

function reasonOf(errors: readonly string[] | undefined): string {
  return (errors ?? ['not valid']).join('; ').slice(0, MAX_REASON_CHARACTERS);
}
