/**
 * Databases that are older than the baseline: the migrations that it took the place of are no longer in this version, so a database
 * has run all of them, or it needs a version that still has them.
 */
import { StartError } from '@farebox/process/start-error';

/** The migration that a new database begins with. */
export const BASELINE = '280_baseline.sql';

/** The last commit of Farebox that has all of them, as docs/upgrading.md tells it. */
export const LAST_COMMIT_BEFORE = '0076edaf';

/** The migrations that the baseline took the place of, each with the checksum of its text. */
const BEFORE: ReadonlyMap<string, string> = new Map([
  ['001_ledger.sql', 'ace8a960022988004e8e62c10937520f4d801fb555d2af5e22626b5e12156f98'],
  ['002_keys.sql', 'b0a19688dbccfded5bcd90e28fccf7bf8852b2ab531d303d9b0a3a7cc9dcaa6f'],
  ['003_calls.sql', '4d12b5475712c574e37de64807c3519e57b12d560e08d07ebf632e47a096ccf1'],
  ['004_settlements.sql', 'e5069e96841e376adc2fabbe7f494e11a73207c4549147743b72e371afd9c694'],
  ['005_custody.sql', 'd168a6ff89d0619d21454517096727b7498ca274996d0ab7b2470ab40e768d77'],
  ['006_cards.sql', '4b950b774068978dbe1fe0d98f4641a62be227ef17ff77425be879baf37b84e4'],
  ['007_auto_recharge.sql', 'bd2bd8f6df67b2d8d6165a64f98c8c5d0cb2ba835dda913861a9ce161022f582'],
  ['008_topups.sql', 'aba088140dba52627a297c343f1ac7f41f8d5117e6c1fd16d66dbdf1c5190782'],
  ['009_mails.sql', 'fd698b65bb7cbb008c4ec4fd59989a3e30658c63ba605f216fce1827560a6bf8'],
  ['010_operator.sql', 'aa36e4b4a07405484399961e8b428f1d4c8d7becbfa0cee40755069eab0ccfc4'],
  ['011_purchases.sql', 'a4a47688f9b2221d2366aaf2aea6aa0e0494d5d6c33bb70467a04872024f637e'],
  ['012_without_waiting.sql', '0581ebf9fcd75265c4cf539901f268f8c8378d8ff770d97c2dabe29316dd445e'],
  ['014_secret_versions.sql', '939781f486527f1d359316afcedf889a135cfb2e43c3f60427b6754c2e566790'],
  ['015_trial_credits.sql', '43168016fc2281d42963a40128c44a0a3d39791d07b53343fe6a2cb6ea5c0cfc'],
  ['016_lost_gas.sql', '75c7d725f86c68cf4c04cc6ef55c0bb535e2f70cff7ec812d7699bab085078d8'],
  ['017_ending_transactions.sql', '655e2d3b3152557f356869b3a7e303278b237de44a95b0ac16cb8cdca2c95af2'],
  ['018_open_calls.sql', '4641ff7cc8213855bfd931a37439838d983034d0ebb8e8c679cf28695015c4a6'],
  ['019_jobs.sql', 'd2955818935e24f841a8fd52de80e5f020a75e0a50195eb1b7128ec00cd45061'],
  ['020_sold_keys.sql', '035e994f5cfe5db8020310699bf24a1559ba43094adebdd8f1a2877e20ec53d1'],
  ['022_data_lists.sql', 'f3e15e04c11011b27d11b3b701eaab85a4d7e09afd96a37f0a635f3c2cade268'],
  ['023_gas_spent.sql', 'bf52010f57913649f14213a806a9f2347366e72c782f916f0ff2633cbb79f221'],
  ['024_key_links.sql', 'fc79a9dee6061b409fff81fc7a9bb5a98992677464271d93a79a033ef25a3a58'],
  ['026_devices.sql', 'df3f2cc3197aff00b4cceadf323e611f0a01258f064081fd7d9326b81b218f36'],
  ['027_call_shares.sql', 'bc32779b1b2f8898ea850db15be429441fe6c80081c19503c174979d9ca27540'],
  ['028_lean_calls.sql', '1f6b737c7b48b2c8797e27d500ba0975a5057762f0b2148b24eeeb63975f1d06'],
  ['029_lean_ledger.sql', 'e9d0a187ba2b8a7703a3db88248932c51dd19550f397df0cdc246f73aca1ad3b'],
  ['031_yield_history.sql', 'ea56b038a464af9a741f91e265e302e40484b961345aba0e3180918890b85d9e'],
  ['033_yield_keeper.sql', 'c0a548de1bc61e28e5a7861ed7801e11fb796464164844e3f344cc81d7497071'],
  ['035_functions.sql', 'b528ecf00fadc8cb609fc8e7f0f98308b24ff1c0f74cd9e086aa2a78c55b2b8b'],
  ['036_key_links_end.sql', '5978f0ad093de5efca725a0fe0141c7d9d13ccf47a5d7ef91e7417d5d56f77e1'],
  ['040_dispute_due.sql', 'a047cdebae9854c2552da25899ae54e1bf027251c86fca6731d78b959020ad6e'],
  ['041_solana_yield.sql', '993ae6b67ed214b68df586ac5b7a8e4ca1adb4f33568f82a6ca7cde9524ad975'],
  ['042_solana_yield_late.sql', '3e83089dae812f376180e06492efea945b43e67e99b5939586a251d0ea3e0fbd'],
  ['044_webhooks.sql', '73efa1c7df1f4816a6831c4f448bafacad1617a5ac5f5f0d7f4aa7f223b39ce2'],
  ['045_a2a_tasks.sql', 'de43037cf62fc3e88e3a027a5a9e57efb136dc2adb005a1c44b22c13bf3ff4d8'],
  ['046_yield_keeper_moves.sql', 'd6374a9b2317c5758a2062c3b7b888b9e4f1675db665583c30ba85b49f0c14c3'],
  ['047_a2a_workers.sql', 'f3ca4feb3b793fb8edb6618d590de826afc667e7d93f3b155852c599dd9377b9'],
  ['048_forgetting.sql', '9cbab5d657d0bb83e257654992dde5fb6e9eb300fb30db9132b431a092614079'],
  ['049_yield_index_samples.sql', '8e15304ee855683d00419662abcb7ab64a14efd41a433fac6e2b0d2dcb6dd94a'],
  ['051_device_refusals.sql', 'e54bbeaf845b3f6499c8e8c9cef891722d60cca614ee16996555d63c23ff4413'],
  ['053_root_buyers.sql', '88127ac1ff426382df3b1f5e33a83945975e7a2b55bb422510db15f868047974'],
  ['054_sold_key_refunds.sql', 'e91241d4f4d27b33af6535cc770702e53dbc17bae2ef1b9df49bd2f385a3acee'],
  ['055_credit_origins.sql', '85a4560f3a7494602b1a02114b4b27155b361e6d4b4f9fd4c9bbd04ce29ad2ca'],
  ['056_free_hang_ups.sql', '253530f4a9af33d9f73cc1eea9936a94b059a9911c543a4d48f0d2000df38b04'],
  ['057_followed_calls.sql', '7092dbbeeb7db0efb68adbad3adeea984cd3c00c63f7ae9dd67c2db37a1901c8'],
  ['058_payments_in_flight.sql', '7a9ede14d95f2384e2db72f351a67d772b099f72564ac739dd71af9d08f03596'],
  ['060_charges_asked_for.sql', 'd07ada9976a36685843390d9017b998b0f00625e99b133ab0e0b6487cd14561d'],
  ['061_card_consent.sql', '3bb65ec8ac54e6ae591a9821e84410356eb086f771a6f29213726e73e5482964'],
  ['062_held_shares.sql', 'ae453e1c659a1c02e5ebbd30cde401e531751ae6752ec863cf1aae64fc521c9e'],
  ['063_clocks_of_replicas.sql', '6356bddfbcbde7ed7ca23d8d7d2bbb9d0f9d172dcc4613f02a3d176ee83269fc'],
  ['066_account_events.sql', '1466a05059010572741d1663fb79865a7f8eb37e030e492e92f34683bb68bf77'],
  ['067_support.sql', 'ffc32cda87618e6a71195a926e8bbc35492ad8a14471f41ec12e1581a490358a'],
  ['068_lift_bounds.sql', '4fc4f162c2f1e33af9a7ec094865f8bcb4c3c68ad42d62be9553f95042936054'],
  ['070_agent_keys.sql', 'b28ea86595a24ebcb1064170317370e6f5f318339cf77e8febd721ff5699ca10'],
  ['071_former_webhook_secrets.sql', 'd778eaf98a51699b1b3d6d5b0aba19a5fe809027fcf29676c8a48670b0501b54'],
  ['072_rotated_keys.sql', '7587d76d6940aa74c4cf85372ed5b6d7d444ef43de32e3b193e7d9d4a8a56057'],
  ['073_acts_chained.sql', 'd5d0762a799fabd4075ffdec49857ce0de4c3577ed237cdcbd385845e963b499'],
  ['084_walk_newest.sql', '1e22e9b913980cf39f8da0d6bd43881c2251cd3583a83286c11f28a3aea2360b'],
  ['085_second_operator_grants.sql', 'e43a76583ed5cff8e401cb776bcd25a2386468b6145f31a9926f688ec922da51'],
  ['086_public_fleets.sql', '3018513e35cdfcdc36371bb8bbdd953bc012631b1b784698273d2d2dccd0b922'],
  ['089_metered_calls.sql', '9f14525d0ad2a62f3c23a7807afc31d66e22f1affbc9614557ed58676f8078ba'],
  ['090_stock_versions.sql', '9caac02c25b0dbc92a8c205724ff5afc2d9f0de3ef5e0ef64e8e7f8949074c3d'],
  ['091_call_terms.sql', '2689ae42b6644df0d87693ced28802377079ead9e1ba113027ddee8145c370a6'],
  ['095_gate_calls.sql', '825edf2c3a46589a0805f98a5ca3173e3f53afe9cdd23d27a4dcdf5583b8565f'],
  ['105_service_figures.sql', 'ce6855784deed58a1675494182df7acc7b3b410825159061a41156ce1ee2682d'],
  ['121_open_checkouts.sql', 'a1ec02d72879f720f64a4a1bbae5d7728df16cadff532ed0d311aa284626e2a7'],
  ['130_weeks_of_calls.sql', 'eef7b152b0597f8139491977c21f56aa484378060bcd564f736f350384552631'],
  ['140_sales_days.sql', 'ac7ac013cadf12a0fa3750db59db64accac613d4297bd109a257bb5b238fc49d'],
  ['141_closed_days.sql', '5829acc399330e9e2e7afe4dde7367c402648dab3c72ae84b03d71dc24274ee9'],
  ['150_operator_sessions.sql', 'a92dd56268f5100d45714f9f6c9cab3173003aabb4830be4e75cba51e48af860'],
  ['160_recovery.sql', '56afea1c2244a22c9782b2b3f119cbf94198801f58c866e02ffaf2d2ba5c3c6b'],
  ['170_status_spells.sql', '9f58bb2313ed1ccc8680875d60c28d003c6404049e37c6d17e97c94a0ae272e7'],
  ['185_only_one_transaction.sql', '01376f838cc7083627bc58c50a095e8990ca10319ceae18ad7b81ee97a597412'],
  ['186_data_lists_lease.sql', '1888d825b6bfa72913a10acefda9b9ab9e321efdf43812a79041efbf321d9ca3'],
  ['187_source_budgets.sql', '78be699fd142f502d333698caefb4b16ae57c9250a0d9ea3791149d55ff85a89'],
  ['188_source_costs.sql', '088bfaad8b5b74f757d5c49ebd4250ea30571c62d5563162a3c6c5150f67ce14'],
  ['190_call_archives.sql', 'b770a9acb6a740b5271720876bf931b58a118a4f37ade81450db9760c18c4621'],
  ['200_buckets.sql', '0d16d72ab02712af53313ae3113db848d819b19b7243df93c832e3833fbaf206'],
  ['210_erasures.sql', 'eb7a80bbb5c464666dfb0f6759d8270f20eb9daf4cf7525a9ec98e1d729acce7'],
  ['240_cards_shown.sql', 'dc9c6122caf41445c9b2573949c80b6a38fbd5c8c8b5888714b92c4f6cd7ef63'],
  ['250_compacted_weeks.sql', '7db113c9e8723698b8afb5fb1d509f2e8776afffc4f3e094f02184e10c46059f'],
  ['270_followed_calls_owed.sql', '46d3cd0f447f5b1f53fb62ec28088f11150e4301f2687d4cc22306c5de3bf91f'],
  ['280_law_pages.sql', '9b6e363078f5ffee6e2268fbfc1787ad4df888123ee21e264b6f7350e4ce3a93'],
]);

/** What a database has run of the migrations before the baseline. */
export interface BeforeBaseline {
  /** Those that it has not run; empty where it has run all, and where it has run none. */
  missing: readonly string[];
  /** Whether it has run all of them: it needs no baseline. */
  ranAll: boolean;
}

/**
 * Tells what a database has run of the migrations before the baseline.
 *
 * @param ran the checksums of what it has run, by name
 */
export function beforeBaseline(ran: ReadonlyMap<string, string>): BeforeBaseline {
  const missing = [...BEFORE.keys()].filter((name) => !ran.has(name));
  const ranNone = missing.length === BEFORE.size;
  return { missing: ranNone ? [] : missing, ranAll: missing.length === 0 };
}

/** Whether it is the text that this migration had before the baseline. */
export const isBeforeBaseline = (name: string, checksum: string) => BEFORE.get(name) === checksum;

/** Says what to do about a database that lacks some of them. */
function startOlderFirst(missing: readonly string[]): string {
  const [first = ''] = missing;
  return `an older version of Farebox made this database, and ${missing.length} of its migrations are missing (${first} first). Start commit ${LAST_COMMIT_BEFORE} of Farebox on it once, and then this version: docs/upgrading.md.`;
}

/**
 * Looks whether the baseline has to run.
 *
 * @param ran the checksums of what the database has run, by name
 * @returns false where the database has all that the baseline makes
 * @throws StartError when it has run some of the migrations before the baseline, or another text of one
 */
export function needsBaseline(ran: ReadonlyMap<string, string>): boolean {
  for (const [name, checksum] of BEFORE) {
    const known = ran.get(name);
    if (known !== undefined && known !== checksum) throw changedSince(name);
  }
  const { missing, ranAll } = beforeBaseline(ran);
  if (missing.length > 0) throw new StartError(startOlderFirst(missing));
  return !ranAll;
}

/** The refusal of a migration whose text is not the one that ran. */
export function changedSince(name: string): StartError {
  return new StartError(
    `migration ${name} was changed after it had run on this database. Use a version that knows it, or, if it is a sandbox's, npm run sandbox:reset.`,
  );
}
