import type { Service } from './define.ts';

/** What a service is called where names have no dashes, as tools of MCP have: its path in snake case. */
export function toolNameOf({ path }: Pick<Service, 'path'>): string {
  return path.replaceAll('-', '_');
}
