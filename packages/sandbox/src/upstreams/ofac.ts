/** https://sanctionslistservice.ofac.treas.gov: the files of OFAC's lists in its plain XML format. */
import type { FastifyInstance } from 'fastify';
import { dayOf, SANDBOX_LISTED, type SandboxListed } from './listed.ts';
import type { World } from './world.ts';

const NAMESPACE = 'https://sanctionslistservice.ofac.treas.gov/api/PublicationPreview/exports/XML';

export function ofac(app: FastifyInstance, { nowMs }: World): void {
  const file = (listed: readonly SandboxListed[], program: string) => {
    const { day, month, year } = dayOf(nowMs());
    return [
      '<?xml version="1.0" standalone="yes"?>',
      `<sdnList xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns="${NAMESPACE}">`,
      `  <publshInformation><Publish_Date>${month}/${day}/${year}</Publish_Date><Record_Count>${listed.length}</Record_Count></publshInformation>`,
      ...listed.map((entry) => record(entry, program)),
      '</sdnList>',
    ].join('\n');
  };
  // The real service redirects to another address, which sends the file.
  app.get('/api/PublicationPreview/exports/:name', (request, reply) =>
    reply.redirect(request.url.replace('/api/PublicationPreview/exports/', '/files/')),
  );
  app.get('/files/SDN.XML', (_request, reply) =>
    reply.type('application/xml').send(file(SANDBOX_LISTED, 'SANDBOX')),
  );
  app.get('/files/CONSOLIDATED.XML', (_request, reply) =>
    reply
      .type('application/xml')
      .send(file(SANDBOX_LISTED.slice(0, 3).map(withoutAddress), 'SANDBOX-NONSDN')),
  );
}

function withoutAddress(entry: SandboxListed): SandboxListed {
  return {
    ...entry,
    number: 1_000 + entry.number,
    name: `SANDBOX LISTED ${1_000 + entry.number}`,
    address: null,
  };
}

function record({ number, name, kind, alias, address }: SandboxListed, program: string): string {
  const [first, last] = kind === 'individual' ? split(name) : [null, name];
  const [aliasFirst, aliasLast] = kind === 'individual' ? split(alias) : [null, alias];
  return [
    '  <sdnEntry>',
    `    <uid>${number}</uid>`,
    ...(first === null ? [] : [`    <firstName>${first}</firstName>`]),
    `    <lastName>${last}</lastName>`,
    `    <sdnType>${kind === 'individual' ? 'Individual' : 'Entity'}</sdnType>`,
    `    <programList><program>${program}</program></programList>`,
    ...(address === null
      ? []
      : [
          `    <idList><id><uid>${5_000 + number}</uid><idType>Digital Currency Address - ${address.asset}</idType><idNumber>${address.address}</idNumber></id></idList>`,
        ]),
    ...(kind === 'individual'
      ? [
          `    <dateOfBirthList><dateOfBirthItem><uid>${9_000 + number}</uid><dateOfBirth>${String((number % 28) + 1).padStart(2, '0')} Jan ${1950 + (number % 40)}</dateOfBirth><mainEntry>true</mainEntry></dateOfBirthItem></dateOfBirthList>`,
        ]
      : []),
    `    <akaList><aka><uid>${7_000 + number}</uid><type>a.k.a.</type><category>${number % 4 === 0 ? 'weak' : 'strong'}</category>${aliasFirst === null ? '' : `<firstName>${aliasFirst}</firstName>`}<lastName>${aliasLast}</lastName></aka></akaList>`,
    '  </sdnEntry>',
  ].join('\n');
}

/** The first word of a name, and the rest of it as the family name. */
function split(name: string): [first: string, last: string] {
  const at = name.indexOf(' ');
  return [name.slice(0, at), name.slice(at + 1)];
}
