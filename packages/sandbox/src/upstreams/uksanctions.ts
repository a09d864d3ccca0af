/** https://sanctionslist.fcdo.gov.uk: the UK Sanctions List. */
import type { FastifyInstance } from 'fastify';
import { dayOf, SANDBOX_LISTED } from './listed.ts';
import type { World } from './world.ts';

export function uksanctions(app: FastifyInstance, { nowMs }: World): void {
  app.get('/docs/UK-Sanctions-List.xml', (_request, reply) => {
    const { day, month, year } = dayOf(nowMs());
    const name = (words: string, type: string) => {
      const [first, ...rest] = words.split(' ');
      return `<Name><Name6>${rest.join(' ')}</Name6><Name1>${first}</Name1><NameType>${type}</NameType></Name>`;
    };
    const designations = SANDBOX_LISTED.slice(3, 9).map(
      (entry) =>
        `<Designation><LastUpdated>${day}/${month}/${year}</LastUpdated><UniqueID>SBX${String(entry.number).padStart(4, '0')}</UniqueID><Names>${name(entry.name, 'Primary Name')}${name(entry.alias, 'Alias')}</Names><RegimeName>The Sandbox Regulations</RegimeName><IndividualEntityShip>${entry.kind === 'individual' ? 'Individual' : 'Entity'}</IndividualEntityShip></Designation>`,
    );
    return reply
      .type('application/xml')
      .send(
        `<?xml version="1.0" encoding="utf-8"?>\n<Designations><DateGenerated>${day}/${month}/${year}</DateGenerated>${designations.join('')}</Designations>\n`,
      );
  });
}
