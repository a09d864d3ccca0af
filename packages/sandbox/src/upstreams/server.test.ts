import assert from 'node:assert/strict';
import test, { after, before, describe } from 'node:test';
import { createUpstreamSandbox, UPSTREAM_NAMES, type UpstreamSandbox } from './server.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 11, 35, 7);
const WETH = '0x4200000000000000000000000000000000000006';
const NOBODY = `0x${'1'.repeat(40)}`;

let sandbox: UpstreamSandbox;
let url = '';
before(async () => {
  sandbox = createUpstreamSandbox({ host: '127.0.0.1', port: 0, seed: 8402, nowMs: () => NOW_MS });
  ({ url } = await sandbox.start());
});
after(() => sandbox.stop());

interface Got {
  status: number;
  type: string;
  header: (name: string) => string | null;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of many shapes
  json: any;
}

async function ask(path: string, init?: RequestInit): Promise<Got> {
  const response = await fetch(url + path, init);
  const text = await response.text();
  assert.equal(response.headers.get('x-farebox-sandbox'), 'upstreams', path);
  const type = response.headers.get('content-type') ?? '';
  return {
    status: response.status,
    type,
    header: (name) => response.headers.get(name),
    text,
    json: type.includes('json') && /[}\]]$/.test(text) ? JSON.parse(text) : null,
  };
}

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Got> {
  return ask(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

test('paths that lead nowhere or are no paths are answered as by the sandbox too', async () => {
  assert.equal((await ask('/nothing')).status, 404);
  assert.equal((await ask('/defillama/prices/current/%zz')).status, 400);
  assert.equal((await ask(`/defillama/prices/current/${'a'.repeat(12_500)}`)).status, 414);
  // This request line is longer than Node reads, so that Node refuses it before there is a request.
  assert.equal((await ask(`/defillama/${'a'.repeat(40_000)}`)).status, 400);
});

describe('one market behind all prices', () => {
  test('the last close, the price services and the deepest pool say the same', async () => {
    const key = `base:${WETH}`;
    const price: number = (await ask(`/defillama/prices/current/${key}`)).json.coins[key].price;
    const klines = (await ask('/binance/api/v3/klines?symbol=ETHUSDT&interval=1h&limit=3')).json;
    const kraken = (await ask('/kraken/0/public/OHLC?pair=ETHUSD&interval=60')).json.result.XETHZUSD;
    const coinbase = (await ask('/coinbase/products/ETH-USD/candles?granularity=3600')).json;
    const pairs = (await ask(`/dexscreener/token-pairs/v1/base/${WETH}`)).json;
    const gecko = (await ask(`/geckoterminal/simple/networks/base/token_price/${WETH}`)).json;
    const chart = (await ask('/coingecko/coins/ethereum/market_chart?vs_currency=usd&days=2')).json;
    assert.equal(Number(klines.at(-1)[4]), price);
    assert.equal(Number(kraken.at(-1)[4]), price);
    assert.equal(coinbase[0][4], price);
    assert.equal(Number(pairs[0].priceUsd), price);
    assert.equal(Number(gecko.data.attributes.token_prices[WETH]), price);
    assert.deepEqual(chart.prices.at(-1), [NOW_MS, price]);
    for (const pair of pairs) {
      if (pair.baseToken.address !== WETH) continue;
      assert.ok(Math.abs(Number(pair.priceUsd) / price - 1) < 0.003, 'pools differ by less than their fee');
    }
  });

  test('the change over a day is the same wherever it is asked', async () => {
    const percent = (await ask(`/defillama/percentage/coingecko:ethereum`)).json.coins['coingecko:ethereum'];
    const simple = (
      await ask('/coingecko/simple/price?ids=ethereum&vs_currencies=usd&include_24hr_change=true')
    ).json;
    const pairs = (await ask(`/dexscreener/tokens/v1/base/${WETH}`)).json;
    assert.ok(Math.abs(simple.ethereum.usd_24h_change - percent) < 1e-9);
    assert.ok(Math.abs(pairs[0].priceChange.h24 - percent) < 0.006);
    const span = (await ask('/defillama/chart/coingecko:ethereum?span=2&period=1d')).json;
    const [first, last] = span.coins['coingecko:ethereum'].prices;
    assert.ok(Math.abs((last.price / first.price - 1) * 100 - percent) < 1e-9);
  });
});

describe('crypto upstreams answer as the real ones', () => {
  test('DefiLlama keeps keys as asked, leaves out decimals of coins and all of what it does not know', async () => {
    const upper = `base:${WETH.toUpperCase().replace('0X', '0x')}`;
    const { coins } = (await ask(`/defillama/prices/current/${upper},coingecko:bitcoin,base:${NOBODY}`)).json;
    assert.deepEqual(Object.keys(coins), [upper, 'coingecko:bitcoin']);
    assert.equal(coins[upper].decimals, 18);
    assert.equal('decimals' in coins['coingecko:bitcoin'], false);
    assert.equal(coins['coingecko:bitcoin'].timestamp, Math.floor(NOW_MS / 1000));
    const encoded = `/defillama/prices/current/${encodeURIComponent(`base:${NOBODY}`)}`;
    assert.deepEqual((await ask(encoded)).json, { coins: {} });
    assert.equal(
      (await ask('/defillama/chart/coingecko:bitcoin?start=1700000000&end=1700000001')).status,
      400,
    );
  });

  test('DexScreener: arrays on v1 paths, null for no pairs, strings for prices', async () => {
    assert.deepEqual((await ask(`/dexscreener/token-pairs/v1/base/${NOBODY}`)).json, []);
    assert.equal((await ask(`/dexscreener/latest/dex/pairs/base/${NOBODY}`)).json.pairs, null);
    const found = (await ask('/dexscreener/latest/dex/search?q=AERO%20USDC')).json.pairs;
    assert.equal(typeof found[0].priceUsd, 'string');
    assert.equal(found[0].baseToken.symbol, 'AERO');
    const again = (await ask(`/dexscreener/latest/dex/pairs/base/${found[0].pairAddress}`)).json.pairs;
    assert.deepEqual(again[0], found[0]);
    const { liquidity, priceUsd } = found[0];
    assert.ok(Math.abs((2 * liquidity.base * Number(priceUsd)) / liquidity.usd - 1) < 1e-6);
  });

  test('GeckoTerminal: documents with included tokens, 404 for what is unknown', async () => {
    const { data, included } = (await ask('/geckoterminal/networks/base/trending_pools?include=base_token'))
      .json;
    const ids = included.map(({ id }: { id: string }) => id);
    assert.ok(data.every((pool: (typeof data)[0]) => ids.includes(pool.relationships.base_token.data.id)));
    assert.match(data[0].attributes.volume_usd.h24, /^\d+\.\d+$/);
    assert.equal((await ask('/geckoterminal/networks/nowhere/trending_pools')).status, 404);
    const none = await ask(`/geckoterminal/api/v2/networks/base/tokens/${NOBODY}/pools`);
    assert.equal(none.status, 404);
    assert.equal(none.json.errors[0].status, '404');
  });

  test('CoinGecko: unknown ids are absent, missing parameters 422, unknown coins 404', async () => {
    const price = await ask('/coingecko/api/v3/simple/price?ids=bitcoin,nothing&vs_currencies=usd');
    assert.deepEqual(Object.keys(price.json), ['bitcoin']);
    assert.equal((await ask('/coingecko/simple/price?ids=bitcoin')).status, 422);
    assert.equal((await ask('/coingecko/coins/nothing/market_chart?vs_currency=usd&days=1')).status, 404);
    const chart = (await ask('/coingecko/coins/bitcoin/market_chart?vs_currency=usd&days=200')).json;
    assert.equal(chart.prices.length, 201, 'beyond 90 days there is a point a day, and one for now');
    assert.equal((await ask('/coingecko/coins/bitcoin/market_chart?vs_currency=usd&days=900')).status, 401);
  });

  test('candles: rows, order, bounds and errors of the three exchanges', async () => {
    const klines = (await ask('/binance/api/v3/klines?symbol=BTCUSDT&interval=1d&limit=5000')).json;
    assert.equal(klines.length, 1000);
    assert.equal(klines[0].length, 12);
    const [last] = klines.slice(-1);
    assert.equal(last[0], Date.UTC(2026, 10, 21));
    assert.equal(last[6], Date.UTC(2026, 10, 22) - 1, 'the unfinished bar is the last');
    const from = Date.UTC(2026, 9, 1);
    const ranged = (await ask(`/binance/api/v3/klines?symbol=BTCUSDT&interval=4h&startTime=${from}&limit=2`))
      .json;
    assert.deepEqual(
      ranged.map((row: number[]) => row[0]),
      [from, from + 4 * 3_600_000],
    );
    const monday = (await ask('/binance/api/v3/klines?symbol=BTCUSDT&interval=1w&limit=1')).json;
    assert.equal(new Date(monday[0][0]).getUTCDay(), 1);
    const invalid = await ask('/binance/api/v3/klines?symbol=NOPEUSDT&interval=1d');
    assert.deepEqual([invalid.status, invalid.json], [400, { code: -1121, msg: 'Invalid symbol.' }]);
    assert.equal((await ask('/binance/api/v3/klines?symbol=BTCUSDT&interval=9m')).json.code, -1120);
    assert.equal((await ask('/binance/api/v3/klines?interval=1d')).json.code, -1102);

    const kraken = (await ask('/kraken/0/public/OHLC?pair=XBTUSD&interval=240')).json;
    assert.deepEqual(kraken.error, []);
    assert.equal(kraken.result.XXBTZUSD.length, 720);
    assert.equal(kraken.result.last, kraken.result.XXBTZUSD.at(-2)[0]);
    const unknown = await ask('/kraken/0/public/OHLC?pair=NOPE');
    assert.deepEqual([unknown.status, unknown.json], [200, { error: ['EQuery:Unknown asset pair'] }]);

    const coinbase = (await ask('/coinbase/products/BTC-USD/candles?granularity=86400')).json;
    assert.ok(coinbase[0][0] > coinbase[1][0] && coinbase.length <= 300);
    const [, low, high, open, close] = coinbase[1];
    assert.ok(low <= Math.min(open, close) && high >= Math.max(open, close));
    assert.equal((await ask('/coinbase/products/NOPE-USD/candles?granularity=60')).status, 404);
    assert.equal((await ask('/coinbase/products/BTC-USD/candles?granularity=14400')).status, 400);
  });
});

describe('prediction venues answer as the real ones', () => {
  test('Gamma: JSON within JSON, filters, order names, and what is not there', async () => {
    const events = (
      await ask('/polymarket/events?closed=false&active=true&order=volume24hr&ascending=false&limit=5')
    ).json;
    assert.equal(events.length, 5);
    for (const [at, event] of events.entries()) {
      assert.ok(event.volume24hr <= (events[at - 1]?.volume24hr ?? Number.POSITIVE_INFINITY));
      assert.equal(event.closed, false);
      for (const market of event.markets) {
        assert.deepEqual(JSON.parse(market.outcomes), ['Yes', 'No']);
        const [yes, no] = JSON.parse(market.outcomePrices).map(Number);
        assert.ok(Math.abs(yes + no - 1) < 1e-9);
        assert.ok(Math.abs((market.bestBid + market.bestAsk) / 2 - yes) < 1e-9);
        assert.equal(JSON.parse(market.clobTokenIds).length, 2);
      }
    }
    const first = events[0];
    assert.equal((await ask(`/polymarket/events/${first.id}`)).json.slug, first.slug);
    assert.equal((await ask(`/polymarket/events/slug/${first.slug}`)).json.id, first.id);
    assert.equal((await ask(`/polymarket/events?slug=${first.slug}`)).json[0].id, first.id);
    assert.equal((await ask('/polymarket/events/1')).status, 404);
    assert.equal((await ask('/polymarket/events?order=volume_24hr')).status, 422);
    const crypto = (await ask('/polymarket/events?tag_slug=crypto&closed=false')).json;
    assert.ok(
      crypto.length >= 3 &&
        crypto.every(({ tags }: { tags: { slug: string }[] }) => tags[0]?.slug === 'crypto'),
    );
    const old = (await ask('/polymarket/markets?limit=500')).json;
    assert.ok(
      old.some(({ closed }: { closed: boolean }) => closed),
      'without closed=false the ended ones are listed',
    );
    const search = (await ask('/polymarket/public-search?q=bitcoin%20price&events_status=active')).json;
    assert.match(search.events[0].title, /Bitcoin/);
    assert.deepEqual((await ask('/polymarket/public-search?q=xyzzy')).json.pagination, {
      hasMore: false,
      totalResults: 0,
    });
  });

  test('CLOB: the best quote stands last, and the token for no mirrors the one for yes', async () => {
    const [event] = (await ask('/polymarket/events?closed=false&order=volume&limit=1')).json;
    const market = event.markets[0];
    const [yes, no] = JSON.parse(market.clobTokenIds);
    const book = (await ask(`/polymarketclob/book?token_id=${yes}`)).json;
    assert.equal(Number(book.bids.at(-1).price), market.bestBid);
    assert.equal(Number(book.asks.at(-1).price), market.bestAsk);
    assert.ok(Number(book.bids[0].price) < market.bestBid && Number(book.asks[0].price) > market.bestAsk);
    assert.equal(book.market, market.conditionId);
    const other = (await ask(`/polymarketclob/book?token_id=${no}`)).json;
    assert.ok(Math.abs(Number(other.bids.at(-1).price) - (1 - market.bestAsk)) < 1e-9);
    const mid = Number((await ask(`/polymarketclob/midpoint?token_id=${yes}`)).json.mid);
    assert.equal(mid, Number(JSON.parse(market.outcomePrices)[0]));
    assert.equal(
      Number((await ask(`/polymarketclob/price?token_id=${yes}&side=BUY`)).json.price),
      market.bestBid,
    );
    const { history } = (await ask(`/polymarketclob/prices-history?market=${yes}&interval=1d&fidelity=60`))
      .json;
    assert.equal(history.length, 24);
    assert.equal((await ask('/polymarketclob/book?token_id=1')).status, 404);
  });

  test('Kalshi: dollar strings, bids only, cursors, combinations on page one', async () => {
    const all: { ticker: string; status: string }[] = [];
    let cursor = '';
    do {
      const page = (
        await ask(`/kalshi/trade-api/v2/markets?limit=7&status=open&mve_filter=exclude&cursor=${cursor}`)
      ).json;
      all.push(...page.markets);
      cursor = page.cursor;
    } while (cursor !== '');
    assert.equal(new Set(all.map(({ ticker }) => ticker)).size, all.length);
    assert.ok(all.length > 20 && all.every(({ status }) => status === 'active'));
    const [combo] = (await ask('/kalshi/markets?limit=1')).json.markets;
    assert.equal(combo.mve_collection_ticker, 'KXMVESYN');

    const ticker = all[0]?.ticker;
    const { market } = (await ask(`/kalshi/markets/${ticker}`)).json;
    assert.match(market.yes_bid_dollars, /^0\.\d{4}$/);
    assert.equal(market.liquidity_dollars, '0.0000');
    const { orderbook_fp: book } = (await ask(`/kalshi/markets/${ticker}/orderbook?depth=3`)).json;
    assert.deepEqual([book.yes_dollars.length, book.no_dollars.length], [3, 3]);
    assert.equal(book.yes_dollars.at(-1)[0], market.yes_bid_dollars);
    const bestNoBid = Number(book.no_dollars.at(-1)[0]);
    assert.ok(Math.abs(Number(market.yes_ask_dollars) - (1 - bestNoBid)) < 1e-9);

    const { events } = (await ask('/kalshi/events?with_nested_markets=true&status=open')).json;
    assert.equal(events.flatMap(({ markets }: { markets: unknown[] }) => markets).length, all.length);
    const { event, markets } = (await ask(`/kalshi/events/${events[0].event_ticker}`)).json;
    assert.equal(event.category, 'Crypto');
    assert.equal(markets.length, events[0].markets.length);
    const missing = await ask('/kalshi/markets/NOPE');
    assert.deepEqual(
      [missing.status, missing.json],
      [404, { error: { code: 'not_found', message: 'market not found' } }],
    );
    assert.equal((await ask('/kalshi/markets?limit=1001')).status, 400);
    assert.equal((await ask('/kalshi/exchange/status')).json.trading_active, true);
  });
});

describe('earth observation', () => {
  const sst = (query: string) => ask(`/erddap/griddap/jplMURSST41.json?${query}`);

  test('ERDDAP: nearest grid point, raw or encoded brackets, null on land', async () => {
    const query = 'analysed_sst[(2026-01-10T09:00:00Z)][(36.804)][(-122.0)]';
    const { table } = (await sst(query)).json;
    assert.deepEqual(table.columnNames, ['time', 'latitude', 'longitude', 'analysed_sst']);
    assert.deepEqual(table.columnUnits, ['UTC', 'degrees_north', 'degrees_east', 'degree_C']);
    const [time, latitude, longitude, celsius] = table.rows[0];
    assert.deepEqual([time, latitude, longitude], ['2026-01-10T09:00:00Z', 36.8, -122]);
    assert.ok(celsius > 8 && celsius < 20);
    assert.deepEqual((await sst(encodeURIComponent(query))).json.table, table);
    assert.equal((await sst('analysed_sst[(last)][(40)][(-100)]')).json.table.rows[0][3], null);
    const box = (await sst('analysed_sst,mask[(2026-01-10)][(10):(10.02)][(-140):2:(-139.96)]')).json.table;
    assert.equal(box.rows.length, 9);
    assert.equal(box.rows[0][4], 1);
  });

  test('ERDDAP: a block of text with 404 outside time and space, 400 for nonsense', async () => {
    for (const query of [
      'analysed_sst[(2030-01-01T09:00:00Z)][(0)][(0)]',
      'analysed_sst[(1999-01-01T09:00:00Z)][(0)][(0)]',
      'analysed_sst[(last)][(95)][(0)]',
    ]) {
      const { status, type, text } = await sst(query);
      assert.equal(status, 404);
      assert.match(type, /^text\/plain/);
      assert.match(
        text,
        /^Error \{\n {4}code=404;\n {4}message="Not Found: Your query produced no matching results/,
      );
    }
    assert.equal((await sst('nothing[(last)][(0)][(0)]')).status, 400);
    assert.equal((await sst('analysed_sst[(last)][(0)]')).status, 400);
    assert.equal((await sst('analysed_sst[(last)][0:17998][0:35999]')).status, 413);
    assert.equal((await ask('/erddap/griddap/nothing.json?a')).status, 404);
    const info = (await ask('/erddap/info/nesdisVHNchlaDaily/index.json')).json.table.rows;
    const dimensions = info
      .filter(([type]: string[]) => type === 'dimension')
      .map(([, name]: string[]) => name);
    assert.deepEqual(dimensions, ['time', 'latitude', 'longitude']);
  });

  const tiles = '/gibs/wmts/epsg4326/best';
  const photo = 'MODIS_Terra_CorrectedReflectance_TrueColor';

  test('GIBS: tiles in the format of the layer, XML exceptions for all else', async () => {
    const jpeg = await ask(`${tiles}/${photo}/default/2026-11-19/250m/6/13/36.jpg`);
    assert.deepEqual([jpeg.status, jpeg.type], [200, 'image/jpeg']);
    const png = await ask(`${tiles}/GOES-East_ABI_GeoColor/default/2026-11-21T10:20:00Z/1km/3/2/2.png`);
    assert.deepEqual([png.status, png.type], [200, 'image/png']);
    for (const [path, status] of [
      [`${tiles}/GOES_East_ABI_GeoColor/default/default/1km/3/2/2.png`, 400],
      [`${tiles}/${photo}/default/2026-11-19/1km/6/13/36.jpg`, 400],
      [`${tiles}/${photo}/default/2026-11-19/250m/6/13/36.png`, 400],
      [`${tiles}/${photo}/default/2026-11-19/250m/6/60/36.jpg`, 400],
      [`${tiles}/${photo}/default/2026-11-19/250m/9/13/36.jpg`, 400],
      [`${tiles}/${photo}/default/1999-01-01/250m/6/13/36.jpg`, 404],
      [`${tiles}/${photo}/default/2026-11-23/250m/6/13/36.jpg`, 404],
      [`${tiles}/GOES-East_ABI_GeoColor/default/2026-11-21T10:21:00Z/1km/3/2/2.png`, 404],
    ] as const) {
      const refused = await ask(path);
      assert.equal(refused.status, status, path);
      assert.match(refused.text, /<ExceptionReport/);
    }
  });

  test('GIBS: maps of a box in both versions are the same picture', async () => {
    const map = (rest: string) =>
      ask(
        `/gibs/wms/epsg4326/best/wms.cgi?SERVICE=WMS&REQUEST=GetMap&LAYERS=${photo}&STYLES=&WIDTH=400&HEIGHT=200&FORMAT=image/png&TIME=2026-11-19&${rest}`,
      );
    const old = await map('VERSION=1.1.1&SRS=EPSG:4326&BBOX=-20,30,40,60');
    const swapped = await map('VERSION=1.3.0&CRS=EPSG:4326&BBOX=30,-20,60,40');
    assert.equal(old.type, 'image/png');
    assert.equal(old.text, swapped.text);
    assert.notEqual(old.text, (await map('VERSION=1.1.1&SRS=EPSG:4326&BBOX=-20,30,40,61')).text);
    assert.equal((await map('VERSION=1.1.1&SRS=EPSG:4326&BBOX=40,30,-20,60')).status, 400);
    const domains = await ask(`${tiles}/1.0.0/${photo}/default/250m/all/2026-11-01--2026-12-31.xml`);
    assert.match(domains.text, /<Domain>2026-11-01\/2026-11-21\/P1D<\/Domain>/);
  });
});

test('homes: each city has a tract and a value of its own, and what is not known is answered as by the sources', async () => {
  const find = (address: string) =>
    ask(
      `/censusgeocoder/geographies/onelineaddress?benchmark=Public_AR_Current&vintage=Current_Current&address=${encodeURIComponent(address)}`,
    );
  const tract = async (address: string) => {
    const [match] = (await find(address)).json.result.addressMatches;
    return match.geographies['Census Tracts'][0];
  };
  const value = (year: number, { STATE, COUNTY, TRACT }: { STATE: string; COUNTY: string; TRACT: string }) =>
    ask(
      `/acs/${year}/acs/acs5?get=NAME,B25077_001E,B25077_001M&for=tract:${TRACT}&in=state:${STATE}%20county:${COUNTY}&key=sandbox-census`,
    );
  const [illinois, atlanta] = [
    await tract('9 Elm St, Springfield, IL'),
    await tract('12 Peach St, Atlanta, GA 30303'),
  ];
  const [, one] = (await value(2024, illinois)).json;
  const [, other] = (await value(2024, atlanta)).json;
  assert.notEqual(one[1], other[1]);
  assert.ok(Number(one[2]) > 0 && Number(one[2]) < Number(one[1]));
  for (const nowhere of [
    '9 Elm St, Springfield',
    'Springfield, IL',
    '1 Rue de Rivoli, Paris',
    '12 Peach St, Atlanta, IL',
  ])
    assert.deepEqual((await find(nowhere)).json.result.addressMatches, [], nowhere);
  assert.equal((await find('a'.repeat(101))).status, 400);
  assert.deepEqual((await value(2024, { ...illinois, TRACT: '000001' })).status, 204);
  assert.equal((await value(2025, illinois)).status, 404, 'it comes out in December');
  for (const key of ['', '&key=of-nobody'])
    assert.equal(
      (await ask(`/acs/2024/acs/acs5?get=NAME${key}`, { redirect: 'manual' })).status,
      302,
      'a page instead of an answer',
    );
  const lines = (await ask('/fhfa/hpi/download/quarterly_datasets/hpi_at_state.csv')).text.trim().split('\n');
  assert.equal(lines.length, 51 * (4 * 51 + 2), 'from 1975 to the second quarter of 2026');
  assert.ok(lines.every((line) => /^[A-Z]{2},\d{4},[1-4],\d+\.\d\d$/.test(line)));
});

describe('ai', () => {
  const chat = (body: object, headers?: Record<string, string>) =>
    post('/ai/v1/chat/completions', { model: 'sandbox-extractive-1', ...body }, headers);
  const sum = [{ role: 'user', content: 'What is 2 + 2?' }];

  test('a completion has the usual shape and says when it was cut off', async () => {
    const { json } = await chat({ messages: sum }, { authorization: 'Bearer sk-anything' });
    assert.equal(json.object, 'chat.completion');
    assert.deepEqual(json.choices, [
      { index: 0, message: { role: 'assistant', content: '2 + 2 = 4' }, finish_reason: 'stop' },
    ]);
    assert.equal(json.usage.total_tokens, json.usage.prompt_tokens + json.usage.completion_tokens);
    assert.deepEqual((await chat({ messages: sum })).json.choices, json.choices);
    const cut = (await chat({ messages: sum, max_tokens: 2 })).json;
    assert.deepEqual(cut.choices[0], {
      index: 0,
      message: { role: 'assistant', content: '2 +' },
      finish_reason: 'length',
    });
    assert.equal((await ask('/ai/v1/models')).json.data[0].id, 'sandbox-extractive-1');
  });

  test('a stream has an event for each token, the count where it is wanted, and an end; it breaks where told', async () => {
    const stream = async (more: object = {}) => {
      const { text, type } = await chat({ messages: sum, stream: true, ...more });
      assert.match(type, /^text\/event-stream/);
      const events = text.split('\n\n').filter((event) => event !== '');
      return events.map((event) => event.replace(/^data: /, ''));
    };
    const counted = await stream({ stream_options: { include_usage: true } });
    assert.equal(counted.at(-1), '[DONE]');
    assert.deepEqual(JSON.parse(counted.at(-2) ?? '').choices, []);
    assert.equal(JSON.parse(counted.at(-2) ?? '').usage.completion_tokens, 5);
    const plain = await stream();
    assert.equal(plain.length, counted.length - 1);
    const chunks = plain.slice(0, -1).map((event) => JSON.parse(event).choices[0]);
    assert.equal(chunks.map(({ delta }) => delta.content ?? '').join(''), '2 + 2 = 4');
    assert.deepEqual(chunks.map(({ finish_reason }) => finish_reason).at(-1), 'stop');
    const fault = { upstream: 'ai', fault: 'stream-unfinished', afterEvents: 2, remaining: 1 };
    assert.equal((await post('/__control/faults', fault)).status, 201);
    assert.equal((await stream()).length, 2);
    assert.equal((await stream()).length, plain.length);
  });

  test('errors have the shape of the API', async () => {
    const wrongKey = await chat({ messages: sum }, { authorization: 'sk-anything' });
    assert.deepEqual([wrongKey.status, wrongKey.json.error.code], [401, 'invalid_api_key']);
    const model = await chat({ model: 'nothing', messages: sum });
    assert.deepEqual([model.status, model.json.error.code], [404, 'model_not_found']);
    const empty = await chat({ messages: [] });
    assert.deepEqual([empty.status, empty.json.error.param], [400, 'messages']);
    const tokens = await chat({ messages: sum, max_tokens: 0 });
    assert.deepEqual([tokens.status, tokens.json.error.type], [400, 'invalid_request_error']);
  });
});

describe('faults', () => {
  const coin = '/defillama/prices/current/coingecko:bitcoin';
  const set = async (fault: object) => {
    const { status } = await post('/__control/faults', { upstream: 'defillama', remaining: 1, ...fault });
    assert.equal(status, 201);
  };

  test('every kind strikes as often as told, then the upstream is itself again', async () => {
    await set({ fault: 'status', status: 429, retryAfterSeconds: 7 });
    const limited = await ask(coin);
    assert.deepEqual([limited.status, limited.header('retry-after')], [429, '7']);
    await set({ fault: 'malformed' });
    const malformed = await ask(coin);
    assert.throws(() => JSON.parse(malformed.text));
    await set({ fault: 'html' });
    assert.match((await ask(coin)).type, /^text\/html/);
    await set({ fault: 'empty' });
    assert.equal((await ask(coin)).text, '');
    await set({ fault: 'reset' });
    await assert.rejects(fetch(url + coin));
    await set({ fault: 'latency', delayMs: 30 });
    assert.equal((await ask(coin)).status, 200);
    assert.equal((await ask(coin)).status, 200);
  });

  test('a request that hangs is never answered', async () => {
    await set({ fault: 'hang' });
    const counted = async () => (await ask('/__control/requests?upstream=defillama')).json.count;
    const before = await counted();
    const impatient = new AbortController();
    let settled = false;
    const pending = fetch(url + coin, { signal: impatient.signal }).finally(() => {
      settled = true;
    });
    while ((await counted()) === before);
    // The fault strikes once: a later request is answered while the earlier one still waits.
    assert.equal((await ask(coin)).status, 200);
    assert.equal(settled, false);
    impatient.abort();
    await assert.rejects(pending, { name: 'AbortError' });
  });

  test('a fault hits only its upstream and path, until it is taken back', async () => {
    await post('/__control/faults', {
      upstream: 'defillama',
      fault: 'status',
      status: 503,
      pathIncludes: '/percentage/',
    });
    assert.equal((await ask(coin)).status, 200);
    assert.equal((await ask('/coingecko/ping')).status, 200);
    for (let again = 0; again < 3; again++) {
      assert.equal((await ask('/defillama/percentage/coingecko:bitcoin')).status, 503);
    }
    await ask('/__control/faults', { method: 'DELETE' });
    assert.equal((await ask('/defillama/percentage/coingecko:bitcoin')).status, 200);
    assert.equal((await post('/__control/faults', { upstream: 'nobody', fault: 'status' })).status, 400);
    assert.equal((await post('/__control/faults', { upstream: 'ai', fault: 'explode' })).status, 400);
  });

  test('errors look as those of the upstream do', async () => {
    await post('/__control/faults', { upstream: 'coingecko', fault: 'status', status: 429, remaining: 1 });
    assert.equal((await ask('/coingecko/ping')).json.status.error_code, 429);
    await post('/__control/faults', { upstream: 'kalshi', fault: 'status', status: 500, remaining: 1 });
    assert.equal((await ask('/kalshi/exchange/status')).json.error.code, 'internal_error');
  });

  test('requests are counted by upstream, also those that fail', async () => {
    await ask('/__control/requests', { method: 'DELETE' });
    await ask('/kraken/0/public/Time');
    await ask('/kraken/nothing');
    await ask('/nothing');
    assert.deepEqual((await ask('/__control/requests?upstream=kraken')).json, {
      upstream: 'kraken',
      count: 2,
    });
    const { requests } = (await ask('/__control/requests')).json;
    assert.deepEqual(Object.keys(requests), [...UPSTREAM_NAMES]);
    assert.equal(requests.defillama, 0);
  });
});
