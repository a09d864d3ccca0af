/** https://scsanctions.un.org: the Security Council's consolidated list. */
import type { FastifyInstance } from 'fastify';
import { SANDBOX_LISTED } from './listed.ts';
import type { World } from './world.ts';

export function unsc(app: FastifyInstance, { nowMs }: World): void {
  app.get('/resources/xml/en/consolidated.xml', (_request, reply) => {
    const listed = SANDBOX_LISTED.slice(0, 6);
    const record = (tag: 'INDIVIDUAL' | 'ENTITY', entry: (typeof listed)[number]) =>
      `<${tag}><DATAID>${690_000 + entry.number}</DATAID><VERSIONNUM>1</VERSIONNUM><FIRST_NAME>${entry.name}</FIRST_NAME><UN_LIST_TYPE>Sandbox</UN_LIST_TYPE><REFERENCE_NUMBER>SBi.${String(entry.number).padStart(3, '0')}</REFERENCE_NUMBER><${tag}_ALIAS><QUALITY>Good</QUALITY><ALIAS_NAME>${entry.alias}</ALIAS_NAME></${tag}_ALIAS></${tag}>`;
    const day = new Date(Math.floor(nowMs() / 86_400_000) * 86_400_000).toISOString();
    return reply.type('application/xml').send(
      `<?xml version="1.0" encoding="UTF-8"?>\n<CONSOLIDATED_LIST xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" dateGenerated="${day}"><INDIVIDUALS>${listed
        .filter(({ kind }) => kind === 'individual')
        .map((entry) => record('INDIVIDUAL', entry))
        .join('')}</INDIVIDUALS><ENTITIES>${listed
        .filter(({ kind }) => kind === 'entity')
        .map((entry) => record('ENTITY', entry))
        .join('')}</ENTITIES></CONSOLIDATED_LIST>\n`,
    );
  });
}
