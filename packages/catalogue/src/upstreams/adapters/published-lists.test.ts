/** The files of the publishers, and files that must not be mistaken for them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readEuList } from './eusanctions.ts';
import { readMixerList } from './mixers.ts';
import { readOfacList } from './ofac.ts';
import { InvalidList } from './published-list.ts';
import { readUkList } from './uksanctions.ts';
import { readUnList } from './unsc.ts';
import { readXmlRecords } from './xml-records.ts';

const bytes = (text: string) => Buffer.from(text, 'utf8');
const refused = (reading: Promise<unknown>, why: RegExp) =>
  assert.rejects(reading, (error) => error instanceof InvalidList && why.test(error.message));

const SDN = `<?xml version="1.0" standalone="yes"?>
<sdnList xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns="https://example.test/any-namespace">
  <publshInformation>
    <Publish_Date>11/20/2026</Publish_Date>
    <Record_Count>2</Record_Count>
  </publshInformation>
  <sdnEntry>
    <uid>101</uid>
    <firstName>Test</firstName>
    <lastName>PERSON &amp; SON</lastName>
    <sdnType>Individual</sdnType>
    <dateOfBirthList>
      <dateOfBirthItem><uid>5</uid><dateOfBirth>07 Oct 1952</dateOfBirth><mainEntry>true</mainEntry></dateOfBirthItem>
      <dateOfBirthItem><uid>6</uid><dateOfBirth>circa 1953</dateOfBirth><mainEntry>false</mainEntry></dateOfBirthItem>
    </dateOfBirthList>
    <programList><program>TEST1</program><program>TEST2</program></programList>
    <idList>
      <id><uid>1</uid><idType>Passport</idType><idNumber>A1</idNumber></id>
      <id><uid>2</uid><idType>Digital Currency Address - XBT</idType><idNumber>1BoatSLRHtKNngkdXEeobR76b53LETtpyT</idNumber></id>
      <id><uid>3</uid><idType>Digital Currency Address - ETH</idType><idNumber>0x5A4DB0C515ED0000000000000000000000000001</idNumber></id>
    </idList>
    <akaList>
      <aka><uid>9</uid><type>a.k.a.</type><category>weak</category><lastName>NICKNAME</lastName></aka>
    </akaList>
  </sdnEntry>
  <sdnEntry><uid>102</uid><lastName>TEST SHIP</lastName><sdnType>Vessel</sdnType></sdnEntry>
</sdnList>`;

describe('the list of OFAC', () => {
  it('gives names, aliases, programmes and addresses of every asset', async () => {
    const { publishedAt, parties } = await readOfacList(bytes(SDN));
    assert.equal(publishedAt, '2026-11-20T00:00:00.000Z');
    assert.deepEqual(parties, [
      {
        uid: '101',
        kind: 'individual',
        name: 'Test PERSON & SON',
        aliases: [{ name: 'NICKNAME', weak: true }],
        birthDates: ['1952-10-07', null],
        programs: ['TEST1', 'TEST2'],
        addresses: [
          { asset: 'XBT', address: '1BoatSLRHtKNngkdXEeobR76b53LETtpyT' },
          { asset: 'ETH', address: '0x5A4DB0C515ED0000000000000000000000000001' },
        ],
      },
      {
        uid: '102',
        kind: 'vessel',
        name: 'TEST SHIP',
        aliases: [],
        birthDates: [],
        programs: [],
        addresses: [],
      },
    ]);
    const [unknown] = (await readOfacList(bytes(SDN.replace('>Vessel<', '>Other<')))).parties.slice(1);
    assert.deepEqual([unknown?.kind, unknown?.kindUnstated], ['entity', true]);
  });

  it('is refused when it is cut off anywhere, or states another number of entries', async () => {
    for (const part of [0.2, 0.5, 0.9, 0.999]) {
      await refused(readOfacList(bytes(SDN.slice(0, Math.floor(SDN.length * part)))), /not a whole list/);
    }
    await refused(readOfacList(bytes(SDN.replace('>2<', '>3<'))), /says 3 records and holds 2/);
    await refused(readOfacList(bytes(SDN.replace('11/20/2026', 'today'))), /when it was published/);
    // There is no twentieth month: day and month are swapped.
    await refused(readOfacList(bytes(SDN.replace('11/20/2026', '20/11/2026'))), /which is no day/);
  });

  it('is refused when it is a page, not XML, or empty', async () => {
    await refused(readOfacList(bytes('<html><body>Maintenance</body></html>')), /nothing of its publication/);
    await refused(readOfacList(bytes('{"error":"x"}')), /not a whole list/);
    await refused(readOfacList(Buffer.alloc(0)), /not a whole list/);
    await refused(readOfacList(Buffer.from([0x3c, 0x61, 0xff, 0xfe])), /not a whole list/);
  });
});

describe('a document of XML', () => {
  const read = (text: string) => readXmlRecords(bytes(text), new Set(['r']), () => {});

  it('expands no entities of its own and nests only so deep', async () => {
    await assert.rejects(
      read('<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;">]><a><r>&y;</r></a>'),
      /undefined entity/,
    );
    await assert.rejects(read(`${'<a>'.repeat(100)}${'</a>'.repeat(100)}`), /nest deeper/);
    await assert.rejects(read(`<a><r>${'<b/>'.repeat(60_000)}</r></a>`), /more than 50000 elements/);
  });

  it('is read the same wherever it is split into chunks, even within a character', async () => {
    const names: string[] = [];
    const text = `<a>${Array.from({ length: 9_000 }, (_, at) => `<r>Имя ${at} 习</r>`).join('')}</a>`;
    await readXmlRecords(bytes(text), new Set(['r']), (element) => names.push(element.text));
    assert.equal(names.length, 9_000);
    assert(names.every((name, at) => name === `Имя ${at} 习`));
  });
});

describe('the list of the United Nations', () => {
  const un = `<?xml version="1.0" encoding="UTF-8"?>
<CONSOLIDATED_LIST dateGenerated="2026-11-19T23:00:03.123Z"><INDIVIDUALS><INDIVIDUAL><DATAID>6908</DATAID>
<FIRST_NAME>TEST</FIRST_NAME><SECOND_NAME>MIDDLE</SECOND_NAME><THIRD_NAME/><UN_LIST_TYPE>Test</UN_LIST_TYPE>
<REFERENCE_NUMBER>TSi.001</REFERENCE_NUMBER><NAME_ORIGINAL_SCRIPT>Тест</NAME_ORIGINAL_SCRIPT>
<INDIVIDUAL_DATE_OF_BIRTH><TYPE_OF_DATE>EXACT</TYPE_OF_DATE><DATE>1966-01-02</DATE></INDIVIDUAL_DATE_OF_BIRTH>
<INDIVIDUAL_DATE_OF_BIRTH><TYPE_OF_DATE>APPROXIMATELY</TYPE_OF_DATE><YEAR>1963</YEAR></INDIVIDUAL_DATE_OF_BIRTH>
<INDIVIDUAL_ALIAS><QUALITY>Low</QUALITY><ALIAS_NAME>Tester</ALIAS_NAME></INDIVIDUAL_ALIAS>
<INDIVIDUAL_ALIAS><QUALITY/><ALIAS_NAME/></INDIVIDUAL_ALIAS></INDIVIDUAL></INDIVIDUALS><ENTITIES><ENTITY>
<DATAID>1</DATAID><FIRST_NAME>TEST GROUP</FIRST_NAME><UN_LIST_TYPE>Test</UN_LIST_TYPE><REFERENCE_NUMBER>TSe.002</REFERENCE_NUMBER>
</ENTITY></ENTITIES></CONSOLIDATED_LIST>`;

  it('gives names of up to four parts, and aliases with their quality', async () => {
    const { publishedAt, parties } = await readUnList(bytes(un));
    assert.equal(publishedAt, '2026-11-19T23:00:03.123Z');
    assert.deepEqual(
      parties.map(({ birthDates }) => birthDates),
      [['1966-01-02', null], []],
    );
    assert.deepEqual(
      parties.map(({ uid, kind, name, aliases }) => [uid, kind, name, aliases]),
      [
        [
          'TSi.001',
          'individual',
          'TEST MIDDLE',
          [
            { name: 'Тест', weak: false },
            { name: 'Tester', weak: true },
          ],
        ],
        ['TSe.002', 'entity', 'TEST GROUP', []],
      ],
    );
  });

  it('is refused when it is cut off or is another document', async () => {
    await refused(readUnList(bytes(un.slice(0, -30))), /not a whole list/);
    await refused(readUnList(bytes('<html/>')), /its root is html/);
  });
});

describe('the list of the European Union', () => {
  const eu = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<export xmlns="http://eu.europa.ec/fpi/fsd/export" generationDate="2026-11-18T16:47:04.449+02:00" globalFileId="1">
<sanctionEntity designationDetails="" unitedNationId="" euReferenceNumber="EU.1.2" logicalId="13"><remark>A remark</remark>
<regulation regulationType="regulation" programme="TST" logicalId="1"><publicationUrl>http://x.test</publicationUrl></regulation>
<regulation regulationType="amendment" programme="TST" logicalId="2"/><subjectType code="person" classificationCode="P"/>
<birthdate circa="false" calendarType="GREGORIAN" birthdate="1964-05-19"/><birthdate circa="true" birthdate="1964-01-01"/>
<nameAlias firstName="" middleName="" lastName="" wholeName="Tst" strong="false" logicalId="3"/>
<nameAlias firstName="Test" middleName="Middle" lastName="PERSON" wholeName="" strong="true" logicalId="4"><regulationSummary/></nameAlias>
<nameAlias wholeName="Тест  Персон" nameLanguage="RU" strong="true" logicalId="5"/><nameAlias wholeName="Test Middle PERSON"/>
</sanctionEntity><sanctionEntity euReferenceNumber="" logicalId="14"><subjectType code="enterprise" classificationCode="E"/>
<nameAlias wholeName="TEST &amp; CO" logicalId="6"/></sanctionEntity></export>`;

  it('gives the first identifying name, the other spellings once each, and programmes', async () => {
    const { publishedAt, parties } = await readEuList(bytes(eu));
    assert.equal(publishedAt, '2026-11-18T14:47:04.449Z');
    assert.deepEqual(parties, [
      {
        uid: 'EU.1.2',
        kind: 'individual',
        name: 'Test Middle PERSON',
        aliases: [
          { name: 'Tst', weak: true },
          { name: 'Тест Персон', weak: false },
        ],
        birthDates: ['1964-05-19', null],
        programs: ['TST'],
        addresses: [],
      },
      {
        uid: '14',
        kind: 'entity',
        name: 'TEST & CO',
        aliases: [],
        birthDates: [],
        programs: [],
        addresses: [],
      },
    ]);
  });

  it('is refused when it is cut off, is another document, or an entry has no name', async () => {
    await refused(readEuList(bytes(eu.slice(0, -20))), /not a whole list/);
    await refused(readEuList(bytes('<html/>')), /its root is html/);
    await refused(readEuList(bytes(eu.replace(' generationDate', ' madeOn'))), /when it was published/);
    await refused(
      readEuList(bytes(eu.replace('<nameAlias wholeName="TEST &amp; CO" logicalId="6"/>', ''))),
      /no number or no name/,
    );
  });
});

describe('the UK Sanctions List', () => {
  const uk = `<Designations><DateGenerated>09/11/2026</DateGenerated><Designation><UniqueID>TST0001</UniqueID>
<Names><Name><Name6>LATER</Name6><NameType>Alias</NameType><AliasStrength>Low quality a.k.a</AliasStrength></Name>
<Name><Name6>PERSON</Name6><Name1>TEST</Name1><NameType>Primary Name</NameType></Name></Names>
<NonLatinNames><NonLatinName><NameNonLatinScript>Тест</NameNonLatinScript></NonLatinName></NonLatinNames>
<IndividualDetails><Individual><DOBs><DOB>09/11/1955</DOB><DOB>dd/mm/1956</DOB></DOBs></Individual></IndividualDetails>
<RegimeName>The Test Regulations</RegimeName><IndividualEntityShip>Individual</IndividualEntityShip></Designation></Designations>`;

  it('gives the primary name first, parts in their order', async () => {
    const { publishedAt, parties } = await readUkList(bytes(uk), null);
    // The ninth of November: British dates begin with the day.
    assert.equal(publishedAt, '2026-11-09T00:00:00.000Z');
    assert.deepEqual(parties, [
      {
        uid: 'TST0001',
        kind: 'individual',
        name: 'TEST PERSON',
        aliases: [
          { name: 'LATER', weak: true },
          { name: 'Тест', weak: false },
        ],
        birthDates: ['1955-11-09', null],
        programs: ['The Test Regulations'],
        addresses: [],
      },
    ]);
  });

  it('takes the date of the file when the list states none, and is refused without either', async () => {
    const silent = uk.replace(/<DateGenerated>.*<\/DateGenerated>/, '');
    assert.equal(
      (await readUkList(bytes(silent), '2026-11-17T08:00:00.000Z')).publishedAt,
      '2026-11-17T08:00:00.000Z',
    );
    await refused(readUkList(bytes(silent), null), /when it was published/);
  });
});

describe('a list of mixing services', () => {
  it('has a date and addresses, or is refused', async () => {
    const list = {
      date: '2026-11-20',
      entries: [{ id: '1', name: 'M', addresses: [`0x${'5'.repeat(40)}`] }],
    };
    const { publishedAt, parties } = await readMixerList(bytes(JSON.stringify(list)));
    assert.equal(publishedAt, '2026-11-20T00:00:00.000Z');
    assert.deepEqual(parties[0]?.addresses, [{ asset: 'any', address: `0x${'5'.repeat(40)}` }]);
    await refused(readMixerList(bytes(JSON.stringify(list).slice(0, -5))), /not JSON/);
    await refused(
      readMixerList(bytes('{"date":"2026-11-20","entries":[{"id":"1","name":"M","addresses":[]}]}')),
      /addresses/,
    );
  });
});
