/**
 * English words that say nothing about a subject, however many headlines share them: function words, numbers and times, and
 * the words that any headline is built from.
 */
export const COMMON_WORDS: ReadonlySet<string> = new Set(
  [
    'a about above after again against all almost along already also although always am amid among an and another any anyone',
    'anything are around as at away back be became because been before behind being below beside best better between beyond both',
    'but by came can cannot come comes coming could did do does doing done down due during each either else enough even ever every',
    'everyone everything far few for found from full get gets getting give given gives go goes going gone got had half has have',
    'having he her here hers him his how however if in inside instead into is isn it its itself just keep keeps kept know known',
    'last late later least less let lets like likely little long look looking looks lot made make makes making many may maybe me',
    'might mine more most much must my near nearly need needs never new newest next no nobody none nor not nothing now of off often',
    'old on once one only onto open or other others our ours out outside over own part per perhaps put puts quite rather ready',
    'really right said same saw say saying says see seeing seem seems seen sees set sets several shall she should show showed shows',
    'since so some someone something soon still such sure take taken takes taking tell tells than that the their theirs them then',
    'there these they thing things think thinks this those though through thus till to today together told tomorrow too took toward',
    'towards tried tries try trying turn turned turning turns under until up upon us use used uses using very via want wants was way',
    'ways we well went were what whatever when where whether which while who whole whom whose why will with within without won would',
    'yes yesterday yet you your yours',
    'zero one two three four five six seven eight nine ten eleven twelve dozen hundred thousand million billion trillion first second',
    'third fourth fifth half twice percent pct',
    'monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october',
    'november december week weeks weekly month months monthly year years yearly day days daily hour hours morning night quarter',
    'ahead alert analysis analyst analysts big biggest breaking chart charts check clear continue continues despite expect expected',
    'expects explained explainer face faces fact facts feature featured find finds focus follow following follows guide heads here',
    'high higher hits hot key latest lead leading leads live low lower major mixed move moves moving news note notes opinion page',
    'photo photos pick picks point points question questions read reading reason reasons report reported reports review reveal reveals',
    'roundup rumor rumors source sources start starts started stay stays step steps story stories summary talk talks test time times',
    'tip tips top update updates updated video videos view views wait waits watch watching word words work works world',
    'don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn synthetic',
  ].flatMap((line) => line.split(' ')),
);
