/** https://webgate.ec.europa.eu: the European Union's consolidated financial sanctions list. */
import type { FastifyInstance } from 'fastify';
import { SANDBOX_LISTED } from './listed.ts';
import type { World } from './world.ts';

const PUBLIC_TOKEN = 'dG9rZW4tMjAxNw';

export function eusanctions(app: FastifyInstance, { nowMs }: World): void {
  app.get<{ Querystring: { token?: string } }>(
    '/fsd/fsf/public/files/xmlFullSanctionsList_1_1/content',
    (request, reply) => {
      if (request.query.token !== PUBLIC_TOKEN) return reply.code(403).type('text/html').send('<html/>');
      const day = new Date(Math.floor(nowMs() / 86_400_000) * 86_400_000).toISOString();
      const alias = (words: string, strong: boolean, logicalId: number) => {
        const [first, ...rest] = words.split(' ');
        return `<nameAlias firstName="${first}" middleName="" lastName="${rest.join(' ')}" wholeName="${words}" function="" gender="" title="" nameLanguage="" strong="${strong}" regulationLanguage="en" logicalId="${logicalId}"/>`;
      };
      const entities = SANDBOX_LISTED.slice(5, 11).map(({ number, name, alias: other, kind }) => {
        const subject =
          kind === 'individual'
            ? '<subjectType code="person" classificationCode="P"/>'
            : '<subjectType code="enterprise" classificationCode="E"/>';
        return `<sanctionEntity designationDetails="" unitedNationId="" euReferenceNumber="EU.${9_000 + number}.0" logicalId="${number}"><regulation regulationType="regulation" organisationType="council" publicationDate="2026-01-01" entryIntoForceDate="2026-01-01" numberTitle="0/0 (OJ L0)" programme="SANDBOX" logicalId="${100 + number}"/>${subject}${alias(name, true, 200 + number)}${alias(other, false, 300 + number)}</sanctionEntity>`;
      });
      return reply
        .type('application/xml')
        .send(
          `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<export xmlns="http://eu.europa.ec/fpi/fsd/export" generationDate="${day}" globalFileId="1">${entities.join('')}</export>\n`,
        );
    },
  );
}
