/** The services that Farebox ships with: what each takes, answers and costs in USD. Rendered from the registry by `npm run format`. */

/** Stands in every answer that is JSON. */
export interface Answered {
  success: true;
  service: string;
}

export interface Services {
  /** A managed wallet for an agent, its key kept encrypted until you export or delete it. Each agentId has one, paid once. */
  'agent-create-wallet': {
    in: { agentId: string; agentName?: string; networks?: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[]; purpose?: string };
    out: { wallet_id: string; walletId: string; wallet_address: string; walletAddress: string; agentId: string; agentName: string | null; networks: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[]; addresses: ({ network: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; address: string })[]; custody_type: "managed"; purpose: string | null; status: "active"; created: boolean; created_at: string; walletSecret: string | null; manage: { facts: string; export: string; delete: string }; requestId: string } & Answered;
    usd: '2.00';
  };
  /** One completion by a language model: send a prompt, get text, the model that wrote it and its token counts. */
  'ai-inference': {
    in: { prompt: string; systemPrompt?: string; maxTokens?: number; temperature?: number; model?: string; strictModel?: boolean; stream?: boolean };
    out: { content: string; model: string; requestedModel: string | null; usage: ({ prompt_tokens: number; completion_tokens: number; total_tokens: number }) | (null); finishReason: (string) | (null); serviceVersion: string; simulated?: true } & Answered;
    usd: '0.05';
  };
  /** The air of this hour at a point: dust and gases in µg/m³, and the indices of the US and Europe (CAMS model). */
  'air-quality': {
    in: { lat: number; lon: number; pollutant?: "NO2" | "SO2" | "CO" | "O3" | "PM2.5" | "PM10" | "aerosol" };
    out: { data: { no2: number | null; so2: number | null; o3: number | null; co: number | null; pm25: number | null; pm10: number | null; aerosolOpticalDepth: number | null; aqi: number | null; europeanAqi: number | null; category: ("good" | "moderate" | "unhealthy for sensitive groups" | "unhealthy" | "very unhealthy" | "hazardous") | (null); selected: ({ pollutant: "NO2" | "SO2" | "CO" | "O3" | "PM2.5" | "PM10" | "aerosol"; value: number | null; unit: string }) | (null); quality: string; observedAt: string; dataResolutionDeg: number; gridLat: number; gridLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.15';
  };
  /** The allowance that a spender has of a wallet’s token, with unsigned transactions to set or revoke it; or the approvals a wallet gave lately. */
  'approval-manager': {
    in: { ownerAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; tokenAddress?: string; spenderAddress?: string; amount?: string; amountRaw?: string; action?: "approve" | "revoke" | "check" | "list" };
    out: { action: "approve" | "revoke" | "check" | "list"; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc"; ownerAddress: string; tokenAddress: string | null; tokenSymbol: (string) | (null); spenderAddress: string | null; spenderIsContract: boolean | null; currentAllowance: string | null; currentAllowanceFormatted: string | null; isUnlimited: boolean | null; amount: string | null; amountRaw: string | null; transaction: ({ from: string; to: string; data: string; value: "0x0"; chainId: number; gas: (string) | (null) }) | (null); revokeTransaction: ({ from: string; to: string; data: string; value: "0x0"; chainId: number; gas: (string) | (null) }) | (null); simulation: ({ success: boolean; revertReason: (string) | (null) }) | (null); approvals: (({ tokenAddress: string; symbol: (string) | (null); spender: string; allowance: string; allowanceFormatted: string | null; isUnlimited: boolean; blockNumber: number; revokeTransaction: { from: string; to: string; data: string; value: "0x0"; chainId: number; gas: (string) | (null) } })[]) | (null); searchedFromBlock: (number) | (null); blockNumber: number } & Answered;
    usd: '0.20';
  };
  /** Finds where an asset can be bought for less than it sells for elsewhere: order books and Uniswap, after fees and gas. */
  'arbitrage-scanner': {
    in: { minProfitPercent?: number; chains?: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[]; assets?: (string)[]; capitalUSD?: number; takerFeePercent?: { binance?: number; kraken?: number; coinbase?: number } };
    out: { opportunities: ({ asset: string; buyChain: string | null; sellChain: string | null; buyExchange: string; sellExchange: string; buyPriceUSD: number; sellPriceUSD: number; profitPercentage: number; netProfitPercentage: number; estimatedProfit: number; requiredCapital: number; size: number; depth: { buyLevels: number; sellLevels: number; limitedBy: "price" | "depth" | "capital" }; gasEstimate: number; feesEstimate: number; executionPath: (string)[] })[]; totalOpportunities: number; scannedPairs: number; quotes: ({ asset: string; venue: string; chain: string | null; instrument: string; bestBidUSD: number; bestAskUSD: number; takerFeePct: number; gasUSD: number | null })[]; bestNetProfitPercentage: number | null; unavailable: ({ asset: string; reason: string })[]; disclaimer: string } & Answered;
    usd: '1.25';
  };
  /** Quotes what up to 20 swaps would give now, simulated by Uniswap v3’s quoter on chain over all fee tiers, with impact and route. */
  'batch-quote': {
    in: { quotes: ({ fromToken: string; toToken: string; amount?: string; amountRaw?: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana" })[] };
    out: { quotes: ({ fromToken: string; toToken: string; fromAddress: string | null; toAddress: string | null; fromSymbol: (string) | (null); toSymbol: (string) | (null); chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; amount: string | null; amountRaw: string | null; amountIn: string | null; amountInFormatted: string | null; amountOut: string | null; amountOutFormatted: string | null; price: number | null; priceImpactPct: number | null; feePct: number | null; minReceived: string | null; route: ({ pool: string; dex: string; feePct: number; fromAddress: string; toAddress: string })[]; gasEstimate: (number) | (null); blockNumber: (number) | (null); error: ({ code: string; message: string }) | (null) })[]; count: number; quoted: number } & Answered;
    usd: '0.40';
  };
  /** Checks a wallet, and a name if given, against dated lists of sanctions: matches with list, entry and score; enhanced adds counterparties. */
  'compliance-check': {
    in: { walletAddress: string; name?: string; birthDate?: string; entityType?: string; country?: string; checkType?: "basic" | "enhanced"; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana" };
    out: { data: { walletAddress: string; chain: string; name: string | null; checkType: "basic" | "enhanced"; complianceStatus: "Compliant" | "Non-Compliant" | "Needs Review"; overallScore: number; deductions: ({ code: string; points: number })[]; checks: ({ regulation: string; status: "clear" | "match" | "review" | "not_evaluated"; findings: string; source: string; asOf: string | null })[]; violations: ({ code: string; address: string; list: string; uid: string; name: string; programs: (string)[]; transactionHash: string | null })[]; nameMatches: ({ list: string; listTitle: string; listPublishedAt: string; uid: string; name: string; matchedName: string; weakAlias: boolean; kind: string; programs: (string)[]; score: number; strength: "strong" | "review"; clearedBy: ("birthDate" | "entityType") | (null); sameBirthDate: boolean })[]; requiresEscalation: boolean; nextSteps: (string)[]; lists: ({ list: string; title: string; publishedAt: string; confirmedAt: string; sha256: string; entries: number })[]; disclaimer: string } } & Answered;
    usd: '1.75';
  };
  /** Published rules that may apply to an operation in a jurisdiction: citation, address, date, trigger and duties of each, from a dated rule base. */
  'compliance-consultation': {
    in: { operationType: string; jurisdiction: (string)[]; details?: { amountUsd?: number } };
    out: { operationType: string; subjects: (string)[]; jurisdictions: (string)[]; applicableRegimes: ({ id: string; name: string; jurisdiction: string; citation: string; url: string; since: string; inForce: boolean | null; appliesFrom: string | null; pageChangedOn: string | null; readOn: string; readAt: (string)[]; trigger: string; obligations: (string)[]; threshold: ({ amount: number; currency: string; per: string; reached: boolean | null }) | (null) })[]; licences: ({ jurisdiction: string; licence: string; citation: string })[]; sanctionsNotes: (string)[]; openQuestions: (string)[]; notCovered: (string)[]; asOf: string; disclaimer: string } & Answered;
    usd: '5.00';
  };
  /** How far a construction project is by its own milestones: percent, schedule, earned value, and dates of satellite pictures. */
  'construction-progress': {
    in: { projectId: string; milestones?: ({ name: string; complete?: boolean; percentComplete?: number; weight?: number; plannedStart?: string; dueDate?: string; budget?: number; actualCost?: number })[]; lat?: number; lon?: number; projectDescription?: string };
    out: { data: { projectId: string; completionPercentage: number; currentPhase: string | null; completedMilestones: (string)[]; upcomingMilestones: (string)[]; overdueMilestones: (string)[]; timeline: { plannedPercentage: number | null; onSchedule: boolean | null; dueDate: string | null; estimatedCompletion: string | null; daysAhead: (number) | (null) }; earnedValue: ({ budgetAtCompletion: number; earnedValue: number; plannedValue: number | null; actualCost: number | null; schedulePerformanceIndex: number | null; costPerformanceIndex: number | null; estimateAtCompletion: number | null }) | (null); imagery: (({ date: string; satellite: (string) | (null); cloudCover: number | null; previewUrl: (string) | (null); resolutionM: number })[]) | (null); cannotSee: (string)[] }; poweredBy: string } & Answered;
    usd: '1.50';
  };
  /** Scans a contract’s bytecode: dangers that a call can reach, proxies, the owner and its powers, a simulated sale. */
  'contract-scan': {
    in: { contractAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana" };
    out: { contractAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; safetyScore: number; scoreParts: ({ severity: "CRITICAL" | "HIGH" | "MEDIUM" | "LOW"; count: number; pointsOff: number })[]; vulnerabilities: ({ id: string; severity: "CRITICAL" | "HIGH" | "MEDIUM" | "LOW"; confidence: "high" | "medium" | "low"; title: string; detail: string; pointsOff: number })[]; verified: boolean | null; verifiedAs: ({ name: (string) | (null); match: string; language: string; compiler: string }) | (null); isProxy: boolean; proxy: ({ kind: string; implementation: string; admin: string | null; beacon: string | null }) | (null); implementation: string | null; owner: string | null; ownership: "owned" | "renounced" | "unknown"; paused: boolean | null; checks: { delegatecall: { found: boolean | null; detail: string }; callcode: { found: boolean | null; detail: string }; selfdestruct: { found: boolean | null; detail: string }; create2: { found: boolean | null; detail: string }; txOrigin: { found: boolean | null; detail: string }; mint: { found: boolean | null; detail: string }; blacklist: { found: boolean | null; detail: string }; fees: { found: boolean | null; detail: string }; pause: { found: boolean | null; detail: string }; limits: { found: boolean | null; detail: string }; upgrade: { found: boolean | null; detail: string }; honeypot: { found: boolean | null; detail: string } }; trade: ({ outcome: "sold" | "purchase_failed" | "nothing_arrived" | "sale_failed"; reason: (string) | (null); buyTaxPercent: number | null; sellTaxPercent: number | null; pool: string; poolKind: "uniswap-v2" | "uniswap-v3"; poolFeePercent: number; quoteToken: string; spent: string }) | (null); selectors: (string)[]; walkComplete: boolean; compiler: (string) | (null); bytecodeSize: number; scannedBytes: number; codeHash: string; blockNumber: number; disclaimer: string } & Answered;
    usd: '1.00';
  };
  /** Pearson correlations of the returns of 2 to 10 assets over 7, 30 or 90 days. */
  'correlation-matrix': {
    in: { assets: (string | { asset: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; weight?: number; amount?: number; valueUsd?: number; returns?: (number)[]; prices?: ((number)[]) | (((number)[])[]) })[]; timeframe?: (7 | 30 | 90) | ("7d" | "30d" | "90d") };
    out: { assets: (string)[]; matrix: { [field: string]: { [field: string]: (number) | (null) } }; correlationPairs: ({ asset1: string; asset2: string; correlation: (number) | (null); strength: ("very strong" | "strong" | "moderate" | "weak" | "very weak") | (null) })[]; observations: number; window: { days: (number) | (null); sampling: "hourly" | "daily" | "as given"; from: string | null; to: string | null } } & Answered;
    usd: '0.75';
  };
  /** A score of 0 to 1,000 from what a chain shows of a wallet’s history, means and lending, point by point; sanctioned is 0, no history a thin file. */
  'credit-risk-score': {
    in: { walletAddress: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; includeDefi?: boolean };
    out: { data: { walletAddress: string; chain: string; score: number; highestScore: number; tier: "Sanctioned" | "Thin file" | "Weak" | "Fair" | "Good" | "Strong"; factors: ({ factor: string; points: number | null; maxPoints: number; because: string })[]; positiveFactors: (string)[]; coverage: number; history: { transactionCount: number; firstActivityAt: (string) | (null); ageDays: number | null; holdingsUsd: number; blockNumber: number }; defi: ({ aave: { collateralUsd: number; debtUsd: number; healthFactor: number | null; liquidations: (number) | (null); searchedFromBlock: (number) | (null) } }) | (null); sanctioned: boolean; disclaimer: string } } & Answered;
    usd: '1.25';
  };
  /** Pools of a token on one chain with depth, volume, fee and price: DexScreener’s pairs and Uniswap v3 read on chain. */
  'dex-liquidity': {
    in: { tokenAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; tokenB?: string };
    out: { tokenAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; pools: ({ dex: string; pairAddress: string; baseSymbol: (string) | (null); baseAddress: string; quoteSymbol: (string) | (null); quoteAddress: string; liquidityUsd: (number) | (null); volume24hUsd: (number) | (null); feeTierPct: number | null; priceUsd: (number) | (null); baseReserve: string | null; quoteReserve: string | null; source: "chain" | "dexscreener" | "chain+dexscreener" })[]; totalLiquidity: number; poolCount: number; blockNumber: (number) | (null) } & Answered;
    usd: '0.20';
  };
  /** Lists the satellite files that NASA has for a place and time: ids, times, clouds, outlines and download addresses. */
  'earthdata-granules': {
    in: { bbox?: (number)[]; lat?: number; lon?: number; startDate?: string; endDate?: string; collection?: string; platform?: string; maxCloudCover?: number; limit?: number };
    out: { data: { totalHits: number; granules: ({ id: string; title: string; collection: string; version: string; platform: (string) | (null); instrument: (string) | (null); startDate: string; endDate: string; cloudCover: number | null; bbox: ((number)[]) | (null); downloadUrls: (string)[]; thumbnailUrl: (string) | (null); dataCenter: string; sizeMb: number | null })[]; bbox: ((number)[]) | (null); startDate: string; endDate: string; collections: (string)[]; downloadRequires: "earthdata-login" }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** Chlorophyll in the sea near a point, measured by VIIRS: the nearest cell without clouds, with its distance. */
  'earthdata-ocean-color': {
    in: { lat: number; lon: number; date?: string };
    out: { data: { chlorophyllMgM3: number; trophicState: "oligotrophic" | "mesotrophic" | "eutrophic"; quality: "measured at the point" | "measured nearby"; measurementDate: string; observedAt: string; clearCells: number; dataResolutionKm: number; gridLat: number; gridLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** Precipitation of a day at a point in millimeters, and of the days before it, from NASA POWER (MERRA-2). */
  'earthdata-precipitation': {
    in: { lat: number; lon: number; date?: string; hoursBack?: number };
    out: { data: { precipitationMm24hr: number; precipitationMmHr: number; precipitationMmPeriod: number | null; periodDays: number; days: ({ date: string; precipitationMm: number | null })[]; observedAt: string; mostRecentGranuleDate: string; qualityLabel: string; dataResolutionDeg: number; dataResolutionLonDeg: number; gridLat: number; gridLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** Moisture of the ground at a point: wetness fractions from NASA POWER, and m³/m³ where a source is licensed. */
  'earthdata-soil-moisture': {
    in: { lat: number; lon: number; date?: string };
    out: { data: { soilMoistureM3M3: number | null; soilMoistureDistanceKm: number | null; surfaceWetnessFraction: (number) | (null); rootZoneWetnessFraction: (number) | (null); profileWetnessFraction: (number) | (null); retrievalQuality: string; measurementDate: string; observedAt: string; dataResolutionDeg: number; dataResolutionLonDeg: number; gridLat: number; gridLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** Sea surface temperature at a point, in Celsius and Kelvin, from the daily 1 km MUR analysis. */
  'earthdata-sst': {
    in: { lat: number; lon: number; date?: string };
    out: { data: { temperatureCelsius: number; temperatureKelvin: number; analysisDate: string; dataResolutionKm: number; coverageNote: string; gridLat: number; gridLon: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** Fires that satellites saw around a point or in a box: place, time, power, confidence and distance. */
  'fire-alerts': {
    in: { lat?: number; lon?: number; radiusKm?: number; days?: number; bbox?: (number)[]; satellite?: "VIIRS_SNPP_NRT" | "VIIRS_NOAA20_NRT" | "VIIRS_NOAA21_NRT" | "MODIS_NRT"; limit?: number };
    out: { data: { count: number; fires: ({ lat: number; lon: number; brightness: number; confidence: "low" | "nominal" | "high"; confidenceAsGiven: string; frp: number | null; satellite: string; instrument: string; acqDate: string; acqTime: string; observedAt: string; daynight: ("day" | "night") | (null); pixelKm: (number)[]; distanceKm: number | null })[]; dataDate: string | null; from: string; to: string; searched: "around lat and lon" | "bbox" | "whole Earth"; boxes: ((number)[])[]; resolutionKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.15';
  };
  /** The cheapest way to see a payment work: confirms how it was paid and names services to call next. */
  'first-call': {
    in: { agentId?: string };
    out: { goldenPath: boolean; sessionId: string; payment: { verified: boolean; amount: string; amountMicro: number; rail: string; payer: string; chain: string | null; timestamp: string }; welcome: string; agentId: string | null; nextServices: ({ id: string; name: string; price: string; endpoint: string; curl: string })[]; catalog: string; documentation: string } & Answered;
    usd: '0.05';
  };
  /** The positions of the vehicles of a fleet, with speed, fuel and ignition as reported, trips, distance and idle time. */
  'fleet-telematics': {
    in: { fleetId?: string; deviceId?: string; vehicleIds?: (string)[]; metrics?: (string)[]; timeRangeHours?: number; limit?: number };
    out: { data: { fleetId: string | null; vehicles: ({ vehicleId: string; name: (string) | (null); location: { lat: number; lon: number }; speed: number | null; heading: number | null; fuelLevel: number | null; engineStatus: ("on" | "off") | (null); odometer: number | null; status: "active" | "idle" | "offline"; lastUpdate: string; trips: ({ startedAt: string; endedAt: string; distanceKm: number; from: { lat: number; lon: number }; to: { lat: number; lon: number }; maxSpeedKmh: number })[]; distanceKm: number; movingSeconds: number; idleSeconds: (number) | (null); unknownSeconds: number })[]; summary: { totalVehicles: number; active: number; idle: number; offline: number; distanceKm: number }; from: string; to: string; simulated?: true }; poweredBy: string } & Answered;
    usd: '0.10';
  };
  /** The discharge of the river at a point, now and ten days ahead, against its floods of 2, 5 and 20 years. */
  'flood-detection': {
    in: { lat: number; lon: number; date?: string };
    out: { data: { floodRisk: "low" | "moderate" | "high" | "severe"; riverDischargeM3s: number; percentile: number; peak: { date: string; riverDischargeM3s: number }; returnLevelsM3s: { years2: number; years5: number; years20: number }; forecast: ({ date: string; riverDischargeM3s: number | null })[]; product: "GloFAS river discharge"; quality: string; observedAt: string; recordYears: number; dataResolutionKm: number; gridLat: number; gridLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** A currency pair: the tone of the last day's news on either side, and momentum from the ECB's reference rates. */
  'forex-sentiment': {
    in: { pair: string; includeEconomic?: boolean; includeCentralBank?: boolean; includeGeopolitical?: boolean };
    out: { data: { pair: string; baseCurrency: string; quoteCurrency: string; rate: number; rateDate: string; overallSentiment: "bullish" | "bearish" | "neutral"; sentimentScore: number; confidence: "low" | "medium" | "high"; record: ({ trades: number; hits: number; hitRatePercent: number | null; expectancyPercent: number | null; expectancyErrorPercent: number | null; unresolved: boolean; holdingPercent: number | null; feePercentPerTrade: number; from: string | null; to: string | null; outOfSample: boolean }) | (null); parts: ({ name: string; value: (number) | (null); weight: number; sample: (number) | (null); says: string; url: (string) | (null); asOf: string | null })[]; technicalOutlook: { trend: ("up" | "down" | "flat") | (null); change28dPct: number | null; high180d: number; low180d: number }; volatilityAssessment: { annualizedPct: number | null; level: ("low" | "medium" | "high") | (null); observations: number }; correlations: ({ pair: string; correlation: number | null; observations: number })[]; recentHeadlines: ({ title: string; url: string; tone: number | null; source: "gdelt" | "hackernews" })[]; assetClass: "forex"; dataSource: string }; disclaimer: string } & Answered;
    usd: '0.40';
  };
  /** Compares a transaction with its history, lists and the chain: every feature with its weight and what it adds to the score. */
  'fraud-detection': {
    in: { transactionData: { [field: string]: unknown }; historicalPatterns?: ({ [field: string]: unknown })[] };
    out: { data: { fraudScore: number; riskLevel: "Low" | "Medium" | "High" | "Critical"; features: ({ code: string; weight: number; value: number | null; contribution: number | null; because: string })[]; suspiciousPatterns: ({ pattern: string; severity: string; evidence: string })[]; anomalies: ({ type: string; description: string; score: number })[]; listMatches: ({ list: string; uid: string; name: string; address: string; publishedAt: string })[]; recommendation: string; requiresHumanReview: boolean; confidenceScore: number; historyUsed: number; fieldsRead: (string)[]; disclaimer: string } } & Answered;
    usd: '0.75';
  };
  /** Base fee and three tip levels on each chain, from what recent blocks really paid, and what a transfer costs in USD. */
  'gas-price-oracle': {
    in: { chains?: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[] };
    out: { gasPrices: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; chainId: (number) | (null); nativeSymbol: string; nativePriceUsd: (number) | (null); baseFeeGwei: (number) | (null); gasPriceGwei: (number) | (null); slow: { maxFeeGwei: (number) | (null); priorityFeeGwei: (number) | (null); maxFeeWei: string | null; priorityFeeWei: string | null; priorityFeeMicroLamports: (number) | (null); usdTransfer: (number) | (null) }; standard: { maxFeeGwei: (number) | (null); priorityFeeGwei: (number) | (null); maxFeeWei: string | null; priorityFeeWei: string | null; priorityFeeMicroLamports: (number) | (null); usdTransfer: (number) | (null) }; fast: { maxFeeGwei: (number) | (null); priorityFeeGwei: (number) | (null); maxFeeWei: string | null; priorityFeeWei: string | null; priorityFeeMicroLamports: (number) | (null); usdTransfer: (number) | (null) }; transferGas: (number) | (null); l1FeeWei: string | null; blockNumber: (number) | (null) })[]; unavailable: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; reason: string })[] } & Answered;
    usd: '0.10';
  };
  /** A fresh wallet at once: address and private key, made for this answer. This server keeps no wallet. */
  'instant-agent-wallet': {
    in: { chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana" };
    out: { walletAddress: string; address: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; chainId: (number) | (null); privateKey: string; createdAt: string; ephemeral: true; fundingInstructions: { asset: "USDC"; contract: string; to: string }; warning: string } & Answered;
    usd: '1.00';
  };
  /** A new API key that holds what you pay: 1 USD of credit for any service. */
  'instant-api-key': {
    in: { name?: string };
    out: { api_key: string; apiKey: string; key_prefix: string; keyPrefix: string; key_id: string; keyId: string; user_id: null; userId: null; starter_credits: number; starterCredits: number; credits_note: string; expires_at: string | null; payment: { chain: string | null; token: string; amount_paid: string; tx_hash: null }; message: string; usage: { base_url: string; example: string; docs: string }; requestId: string } & Answered;
    usd: '1.00';
  };
  /** All readings of a device over a span of time, as a JSON, CSV or Parquet file to download for a day. */
  'iot-bulk-data': {
    in: { deviceId: string; startDate?: (string); endDate?: (string); format?: "json" | "csv" | "parquet"; sensorType?: string };
    out: { data: { exportId: string; deviceId: string; timeRange: { from: string; to: string }; recordCount: number; format: "json" | "csv" | "parquet"; sizeBytes: number; sha256: string; summary: { firstAt: string; lastAt: string; sensors: ({ sensorType: string; unit: string; count: number; min: number; max: number; mean: number })[] }; downloadUrl: string; expiresAt: string; simulated?: true }; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** Readings of a device as they come in, as server-sent events; or those of the last seconds, with a cursor to go on from. */
  'iot-device-stream': {
    in: { deviceId: string; sensorType?: string; durationSeconds?: number; cursor?: string; stream?: boolean };
    out: { data: { streamId: string; deviceId: string; duration: number; units: { [field: string]: string }; dataPoints: ({ timestamp: string; cursor: string; values: { [field: string]: number }; position: ({ lat: number; lon: number }) | (null) })[]; count: number; sampleRate: number | null; encoding: "json"; cursor: string; simulated?: true }; poweredBy: string } & Answered;
    usd: '0.10';
  };
  /** The latest value that a registered device reported, of one sensor or of all, with its unit and time. */
  'iot-sensor-reading': {
    in: { deviceId: string; sensorType?: string };
    out: { data: { deviceId: string; sensorType: string; value: number | null; unit: (string) | (null); timestamp: string; quality: "reported"; readings: ({ sensorType: string; value: number; unit: string; timestamp: string; receivedAt: string })[]; position: ({ lat: number; lon: number }) | (null); metadata: { name: (string) | (null); fleetId: string | null; ageSeconds: number }; simulated?: true }; poweredBy: string } & Answered;
    usd: '0.05';
  };
  /** Open Kalshi markets, busiest first, with quotes in dollars, volume and open interest. */
  'kalshi-markets': {
    in: { limit?: number; category?: string; status?: "open" | "closed" | "settled" };
    out: { count: number; markets: ({ ticker: string; eventTicker: string; title: (string) | (null); yesMeans: (string) | (null); yesBid: number | null; yesAsk: number | null; noBid: number | null; noAsk: number | null; lastPrice: number | null; volume: number | null; volume24h: number | null; openInterest: number | null; status: string; result: ("yes" | "no") | (null); closeTime: string | null; url: string })[] } & Answered;
    usd: '0.25';
  };
  /** A Kalshi market’s implied probability, quotes, live order book with its depth, closing time and resolution rule. */
  'kalshi-odds': {
    in: { marketId: string };
    out: { market: { ticker: string; eventTicker: string; title: (string) | (null); yesMeans: (string) | (null); probability: number | null; yesBid: number | null; yesAsk: number | null; noBid: number | null; noAsk: number | null; spread: number | null; yesBidSize: number | null; yesAskSize: number | null; lastPrice: number | null; volume: number | null; volume24h: number | null; openInterest: number | null; status: string; result: ("yes" | "no") | (null); closeTime: string | null; resolutionRule: (string) | (null); url: string }; orderbook: ({ yesBids: ({ price: number; quantity: number })[]; noBids: ({ price: number; quantity: number })[] }) | (null); spread: number | null; depth: ({ withinUsd: number; bidContracts: number; askContracts: number; bidUsd: number; askUsd: number }) | (null); otherMarkets: ({ ticker: string; yesMeans: (string) | (null); probability: number | null; yesBid: number | null; yesAsk: number | null; status: string })[] } & Answered;
    usd: '0.25';
  };
  /** Open Kalshi markets that match a text or ticker, with quotes, implied probability, closing time and resolution rule. */
  'kalshi-search': {
    in: { query: string; limit?: number };
    out: { query: string; count: number; results: ({ ticker: string; eventTicker: string; title: (string) | (null); yesMeans: (string) | (null); probability: number | null; yesBid: number | null; yesAsk: number | null; noBid: number | null; noAsk: number | null; spread: number | null; yesBidSize: number | null; yesAskSize: number | null; lastPrice: number | null; volume: number | null; volume24h: number | null; openInterest: number | null; status: string; result: ("yes" | "no") | (null); closeTime: string | null; resolutionRule: (string) | (null); url: string; category: (string) | (null); relevanceScore: number })[]; searched: { events: number; markets: number; complete: boolean } } & Answered;
    usd: '0.25';
  };
  /** Land cover of the ground around a point, by class and percent, from the yearly MODIS map of 500 m pixels. */
  'land-use': {
    in: { lat: number; lon: number; year?: number; radiusKm?: number };
    out: { data: { classes: { [field: string]: number }; dominantType: string; typeAtPoint: string | null; pixels: number; unclassifiedPixels: number; areaKm2: number; accuracyNote: string; product: "MCD12Q1"; year: number; observedAt: string; dataResolutionM: number; distanceKm: number; radiusKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.15';
  };
  /** Effective rent, escalations, present value and break cost of a lease, each step with its formula and figures. */
  'lease-analysis': {
    in: { leaseTerms: { monthlyRent?: number; annualRent?: number; termMonths?: number; escalationPct?: number; freeRentMonths?: number; cam?: number; tenantImprovement?: number; deposit?: number; squareFeet?: number; breakMonth?: number; breakFeeMonths?: number; leaseType?: string; currency?: string; renewalOptions?: (unknown)[]; terminationClause?: string }; marketData?: { rentPerSqft?: number; discountRate?: number }; propertyId?: string };
    out: { data: { propertyId: string | null; leaseSummary: { termLength: number; monthlyRent: number; securityDeposit: number | null; leaseType: string | null; currency: string }; schedule: ({ year: number; months: number; monthlyRent: number; baseRent: number; operatingCosts: number; total: number })[]; financialAnalysis: { totalValue: number; annualCost: number; effectiveMonthlyRent: number; presentValue: number; discountRatePct: number; costPerSqFt: number | null; effectiveRentPerSqFt: number | null; marketDifferencePct: number | null; breakCost: ({ month: number; fee: number; paidUntilThen: number; savedAfter: number }) | (null) }; steps: ({ result: string; formula: string; figures: string; value: number })[]; riskFactors: ({ risk: string; severity: "low" | "medium" | "high"; rule: string })[]; riskScore: number; missingTerms: (string)[]; disclaimer: string } } & Answered;
    usd: '1.00';
  };
  /** Coins and tokens (of published lists) of a wallet on several chains, each read at one block, with their value in USD. */
  'multi-chain-balance': {
    in: { walletAddress: string; chains?: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[]; includeTokens?: boolean };
    out: { walletAddress: string; balances: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; nativeSymbol: string | null; native: string | null; nativeRaw: string | null; nativeUsd: (number) | (null); tokens: ({ symbol: (string) | (null); address: string; decimals: number; balance: string; balanceRaw: string; priceUsd: (number) | (null); priceAgreement: ("agree" | "disagree" | "one_source") | (null); pricesBy: ({ source: "defillama" | "dexscreener"; priceUsd: number })[]; valueUsd: (number) | (null) })[]; tokensChecked: ((string)[]) | (null); tokensCheckedCount: (number) | (null); tokenLists: ({ list: string; publishedAt: string; confirmedAt: string; sha256: string; entries: number })[]; blockNumber: (number) | (null); error: ("not_configured" | "unavailable" | "other_kind_of_address") | (null) })[]; totalValueUsd: number; totalIsPartial: boolean } & Answered;
    usd: '0.50';
  };
  /** A USDC payment made ready for the payer to sign: unsigned transfer, payment URI, fee and sanctions check. No money moves here. */
  'payment-processing': {
    in: (unknown);
    out: { status: "unsigned"; amount: string | null; amountRaw: string | null; currency: string; recipient: string | null; chain: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana") | (null); merchantId: string | null; paymentType: string | null; transaction: ({ chainId: number; from?: string; to: string; value: string; data: string; nonce?: number; gas?: string; maxFeePerGas: string; maxPriorityFeePerGas: string; type: number }) | (null); unsignedSerialized: string | null; paymentUri: string | null; simulation: ({ success: boolean; revertReason: (string) | (null) }) | (null); estimatedFeeUsd: (number) | (null); preflight: ({ verdict: "safe" | "caution" | "unknown" | "danger"; findings: ({ pattern: "approval_to_account" | "approval_to_open_executor" | "unlimited_approval" | "approval_to_unverified" | "approval" | "operator_for_all" | "approval_by_signature" | "long_lived_signature" | "expired_signature" | "other_signer" | "other_chain" | "no_chain" | "other_contract" | "undeclared_fields" | "unread_signature" | "unread_witness" | "transfer" | "transfer_of_another" | "transfer_to_token" | "standing_allowance_used" | "empties_balance" | "takes_without_giving" | "hidden_approval" | "hidden_outflow" | "token_misstates" | "impostor_token" | "lookalike_address" | "delegatecall_to_unknown" | "upgrade" | "upgrade_to_unknown" | "owner_change" | "control_change" | "account_delegation" | "account_delegation_everywhere" | "bait_function" | "order" | "order_gives_away" | "refund_payment" | "contract_creation" | "unread_call" | "no_code_called" | "reading_cut" | "not_simulated" | "would_fail" | "sanctioned" | "mixer" | "not_screened" | "unchecked_addresses" | "authority_change" | "account_closed_to_other" | "account_assigned" | "durable_nonce" | "nonce_authority" | "permanent_delegate" | "transfer_hook" | "transfer_fee" | "freezable_token" | "unknown_program" | "unread_instruction" | "hidden_accounts" | "token_minted"; severity: "info" | "caution" | "unknown" | "danger"; address: (string) | (null) })[] }) | (null); recipientSanctioned: boolean | null; paymentOptions: ({ currency: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; contract: string; decimals: number; payTo: string | null })[] } & Answered;
    usd: '0.50';
  };
  /** Echoes a message, and tells the version and how many services are on sale: a check of the whole paid path. */
  'ping': {
    in: { message?: string };
    out: { service: string; version: string; echo: string; chains: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[]; servicesAvailable: number; documentation: string } & Answered;
    usd: '0.25';
  };
  /** Open Polymarket events, busiest first, with each market’s question, outcomes and prices. */
  'polymarket-events': {
    in: { category?: string; limit?: number };
    out: { count: number; events: ({ id: string; slug: string; title: string; description: (string) | (null); volume: number | null; liquidity: number | null; endDate: string | null; status: "active" | "inactive" | "closed"; url: string; mutuallyExclusive: boolean; markets: ({ id: string; question: string; outcomes: (string)[]; prices: (number | null)[]; bestBid: number | null; bestAsk: number | null; closed: boolean })[] })[] } & Answered;
    usd: '0.25';
  };
  /** Probability, price and best quotes of every outcome of a Polymarket event, checked against live books. */
  'polymarket-odds': {
    in: { eventId: string };
    out: { event: { id: string; title: string; slug: string; status: "active" | "inactive" | "closed"; volume: number | null; liquidity: number | null; endDate: string | null; url: string; mutuallyExclusive: boolean }; odds: ({ marketId: string; market: string; outcome: string; probability: number | null; price: number | null; bestBid: number | null; bestAsk: number | null })[]; priceHistory: ({ marketId: string; outcome: string; points: ({ time: string; price: number })[] }) | (null) } & Answered;
    usd: '0.50';
  };
  /** Open Polymarket questions that match a text, with quotes, depth, implied probability, closing time and resolution rule. */
  'polymarket-search': {
    in: { query: string; limit?: number; category?: string };
    out: { query: string; count: number; results: ({ id: string; title: string; slug: string; eventId: string; eventTitle: string; outcomes: (string)[]; prices: (number | null)[]; probability: number | null; bestBid: number | null; bestAsk: number | null; spread: number | null; depth: ({ withinUsd: number; bidContracts: number; askContracts: number; bidUsd: number; askUsd: number }) | (null); volume: number | null; volume24h: number | null; liquidity: number | null; endDate: string | null; resolutionRule: (string) | (null); resolutionSource: (string) | (null); url: string; relevanceScore: number })[]; eventsFound: (number) | (null) } & Answered;
    usd: '0.25';
  };
  /** Weights of 2 to 20 assets by mean and variance with a shrunk covariance, and hierarchical risk parity beside them. */
  'portfolio-optimization': {
    in: { holdings: (string | { asset: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; weight?: number; amount?: number; valueUsd?: number; returns?: (number)[]; prices?: ((number)[]) | (((number)[])[]) })[]; riskTolerance?: "low" | "medium" | "high"; targetReturn?: number; maxWeight?: number; riskFreeRate?: number; periodsPerYear?: number };
    out: { optimizedAllocation: ({ asset: string; currentWeight: number; recommendedWeight: number; action: "buy" | "sell" | "hold"; changeUsd: number | null; expectedReturn: number; expectedReturnError: number; riskShare: number; riskParityWeight: number })[]; expectedReturn: number; expectedReturnError: number; expectedRisk: number; sharpeRatio: number | null; diversificationScore: number; current: { expectedReturn: number; expectedRisk: number; sharpeRatio: number | null }; riskParity: { expectedReturn: number; expectedRisk: number; sharpeRatio: number | null }; rebalancingSteps: (string)[]; assumptions: { goal: string; window: { from: string | null; to: string | null }; observations: number; riskFree: number; maxWeight: number; periodsPerYear: number; shrinkage: number; attainableReturns: { low: number; high: number } }; disclaimer: string } & Answered;
    usd: '2.00';
  };
  /** What a wallet holds across chains: the share of each holding, the change over 24 hours and, where nodes still have it, a week of daily values. */
  'portfolio-tracker': {
    in: { walletAddress: string; includeHistory?: boolean; chains?: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[] };
    out: { walletAddress: string; totalValueUsd: number; totalIsPartial: boolean; change24hPct: number | null; holdings: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; symbol: (string) | (null); address: string | null; balance: string; priceUsd: (number) | (null); priceAgreement: ("agree" | "disagree" | "one_source") | (null); pricesBy: ({ source: "defillama" | "dexscreener"; priceUsd: number })[]; valueUsd: (number) | (null); allocationPct: (number) | (null); change24hPct: number | null })[]; history: (({ at: string; valueUsd: number; blocks: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; blockNumber: number })[] })[]) | (null); chains: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; blockNumber: (number) | (null); tokensChecked: ((string)[]) | (null); tokensCheckedCount: (number) | (null); tokenLists: ({ list: string; publishedAt: string; confirmedAt: string; sha256: string; entries: number })[]; error: string | null })[] } & Answered;
    usd: '0.50';
  };
  /** Odds of Polymarket and Kalshi on a topic: each venue’s quotes and depth, and one probability where both ask the same. */
  'prediction-market-odds': {
    in: { topic: string; platforms?: ("polymarket" | "kalshi")[] };
    out: { topic: string; consensusProbability: number | null; consensusReason: string; platforms: ({ platform: "polymarket" | "kalshi"; market: string; marketId: string; probability: number | null; bestBid: number | null; bestAsk: number | null; spread: number | null; depth: ({ withinUsd: number; bidContracts: number; askContracts: number; bidUsd: number; askUsd: number }) | (null); volume: number | null; volumeUnit: "usd" | "contracts"; weight: number | null; closeTime: string | null; resolutionRule: (string) | (null); url: string; matchConfidence: "high" | "medium" | "low" | "unmatched"; relevanceScore: number })[]; match: ({ score: number; confidence: "high" | "medium" | "low"; doubts: (string)[] }) | (null); totalVolume: number | null; otherQuestions: ({ platform: "polymarket" | "kalshi"; market: string; marketId: string; probability: number | null; relevanceScore: number })[]; searched: ({ platform: "polymarket" | "kalshi"; questions: number })[] } & Answered;
    usd: '0.50';
  };
  /** The same question on Polymarket and Kalshi: how far the prices are apart and what is left after fees. */
  'prediction-market-spread': {
    in: { limit?: number; minSpreadPct?: number; minConfidence?: "low" | "medium" | "high"; market?: string };
    out: { opportunities: ({ event: string; polymarket: { marketId: string; question: string; yes: number; yesBid: number; yesAsk: number; url: string }; kalshi: { ticker: string; question: string; yes: number; yesBid: number; yesAsk: number; url: string }; spreadPct: number; edgeBps: number | null; ways: ({ buyYesOn: "polymarket" | "kalshi"; buyNoOn: "polymarket" | "kalshi"; yesAsk: number; noAsk: number; fees: number | null; edge: number | null; contracts: number | null })[]; matchConfidence: "low" | "medium" | "high"; matchScore: number; matchDoubts: (string)[]; actionHint: string })[]; scanned: { polymarketMarkets: number; kalshiMarkets: number; matched: number }; count: number } & Answered;
    usd: '0.25';
  };
  /** Estimates what a home at a US address is worth: the tract’s median value and, where there are any, comparable sales, moved to today by the state’s price index. */
  'property-valuation': {
    in: { address: string; propertyType?: string; squareFeet?: number; bedrooms?: number; bathrooms?: number; yearBuilt?: number; propertyId?: string };
    out: { data: { propertyId: string | null; address: string; location: { lat: number; lon: number }; estimatedValue: number; valuationRange: { low: number | null; high: number | null }; currency: "USD"; confidenceScore: (number) | (null); tract: { geoId: string; name: string; medianValue: number; marginOfError: number | null; surveyYears: string }; priceIndex: { state: string; indexQuarter: string; factor: number; lowFactor: number; highFactor: number }; marketTrends: { oneYearPct: number | null; fiveYearsPct: number | null }; keyFactors: ({ factor: string; impact: number })[]; comparablesUsed: number; comparablesWeight: number; comparables: ({ soldOn: string; priceUsd: number; distanceMeters: number; propertyType: "house" | "townhouse" | "condo"; squareFeet: number | null; indexFactor: number; valueUsd: number })[]; comparableInsights: string; comparablesSource: ({ name: string; url: string | null; terms: string }) | (null); inputsNotUsed: ("propertyType" | "squareFeet" | "bedrooms" | "bathrooms" | "yearBuilt")[]; disclaimer: string }; poweredBy: string } & Answered;
    usd: '0.75';
  };
  /** Value at risk, expected shortfall, Sharpe, Sortino, drawdown, beta and volatility of a portfolio. */
  'risk-metrics': {
    in: { portfolio: (string | { asset: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; weight?: number; amount?: number; valueUsd?: number; returns?: (number)[]; prices?: ((number)[]) | (((number)[])[]) })[]; confidenceLevel?: number; periodsPerYear?: number };
    out: { valueAtRisk: { var95: number; var99: number; varAtLevel: number; cvar: number; normalVarAtLevel: number; timeHorizon: string }; sharpeRatio: number | null; sortinoRatio: number | null; maxDrawdown: number; beta: number | null; volatility: { daily: number; monthly: number; annualized: number }; riskLevel: "Low" | "Medium" | "High" | "Extreme"; observations: number; confidenceLevel: number; weights: ({ asset: string; weight: number })[]; window: { from: string | null; to: string | null } } & Answered;
    usd: '1.00';
  };
  /** One service for five products of a place: precipitation, granules, sea temperature, soil moisture, ocean color. */
  'satellite-earthdata': {
    in: { product: "precipitation" | "granules" | "sst" | "soil-moisture" | "ocean-color"; lat?: number; lon?: number; date?: string };
    out: { product: "precipitation" | "granules" | "sst" | "soil-moisture" | "ocean-color"; data: { [field: string]: unknown }; availableProducts: (string)[]; poweredBy: string } & Answered;
    usd: '0.25';
  };
  /** An unsigned bridge transaction: USDC by Circle CCTP, other tokens by LI.FI, checked field by field and simulated. */
  'seamless-chain-bridge': {
    in: (unknown);
    out: { amount: string; amountRaw: string; transaction: { to: string; data: string | null; value: string; chainId: number; gas: string | null }; approval: ({ to: string; data: string | null; value: string; chainId: number; gas: string | null; needed: boolean | null }) | (null); template: ({ function: string; arguments: { [field: string]: string | null }; fill: (string)[] }) | (null); quote: { inputAmount: string; outputAmount: string; minOutputAmount: string; totalFeePct: number | null; estimatedFillTimeSec: number; expiresAt: string | null; provider: "cctp" | "lifi"; tool: string; tokenReceived: string }; recipient: string | null; simulation: ({ success: boolean; revertReason: (string) | (null); assumes: string | null }) | (null); preflight: ({ verdict: "safe" | "caution" | "unknown" | "danger"; findings: ({ pattern: "approval_to_account" | "approval_to_open_executor" | "unlimited_approval" | "approval_to_unverified" | "approval" | "operator_for_all" | "approval_by_signature" | "long_lived_signature" | "expired_signature" | "other_signer" | "other_chain" | "no_chain" | "other_contract" | "undeclared_fields" | "unread_signature" | "unread_witness" | "transfer" | "transfer_of_another" | "transfer_to_token" | "standing_allowance_used" | "empties_balance" | "takes_without_giving" | "hidden_approval" | "hidden_outflow" | "token_misstates" | "impostor_token" | "lookalike_address" | "delegatecall_to_unknown" | "upgrade" | "upgrade_to_unknown" | "owner_change" | "control_change" | "account_delegation" | "account_delegation_everywhere" | "bait_function" | "order" | "order_gives_away" | "refund_payment" | "contract_creation" | "unread_call" | "no_code_called" | "reading_cut" | "not_simulated" | "would_fail" | "sanctioned" | "mixer" | "not_screened" | "unchecked_addresses" | "authority_change" | "account_closed_to_other" | "account_assigned" | "durable_nonce" | "nonce_authority" | "permanent_delegate" | "transfer_hook" | "transfer_fee" | "freezable_token" | "unknown_program" | "unread_instruction" | "hidden_accounts" | "token_minted"; severity: "info" | "caution" | "unknown" | "danger"; address: (string) | (null) })[] }) | (null); nextSteps: (string)[]; unsigned: true } & Answered;
    usd: '2.00';
  };
  /** The tone of the last day's news on a subject, and how it changed: the score with its parts, themes and links. */
  'sentiment-analysis': {
    in: { query: string; sources?: ("news" | "gdelt" | "hackernews" | "hn" | "forums" | "twitter" | "x" | "reddit" | "telegram" | "discord")[] };
    out: { query: string; score: number; overall: "bullish" | "bearish" | "neutral"; delta24h: number | null; confidence: "low" | "medium" | "high"; bySource: { [field: string]: (number) | (null) }; parts: ({ name: string; value: (number) | (null); weight: number; sample: (number) | (null); says: string; url: (string) | (null); asOf: string | null })[]; keyThemes: ({ theme: string; count: number })[]; articles: ({ title: string; url: string; tone: number | null; source: "gdelt" | "hackernews" })[]; sampleSize: number; disclaimer: string } & Answered;
    usd: '0.50';
  };
  /** Audit of verified or given Solidity source on the compiler’s own syntax tree: findings with lines, reason, remedy and confidence, and a score with its parts. */
  'smart-contract-audit': {
    in: { contractAddress?: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; sourceCode?: string; contractName?: string; scope?: "full" | "quick" | "targeted" };
    out: { auditId: string; score: number; scoreParts: ({ severity: "CRITICAL" | "HIGH" | "MEDIUM" | "LOW"; count: number; pointsOff: number })[]; findings: ({ id: string; rule: string; class: "reentrancy" | "unchecked-calls" | "access-control" | "arithmetic" | "randomness" | "time" | "denial-of-service" | "front-running" | "storage" | "upgrades" | "token-flow" | "payments" | "signatures" | "encoding" | "callbacks" | "slippage" | "share-price" | "oracles" | "price-manipulation"; swc: string | null; severity: "CRITICAL" | "HIGH" | "MEDIUM" | "LOW"; confidence: "high" | "medium" | "low"; title: string; file: (string) | (null); line: (number) | (null); endLine: (number) | (null); related: ({ file: string; line: number; what: string })[]; contract: (string) | (null); function: (string) | (null); snippet: (string) | (null); description: string; remediation: string })[]; summary: { critical: number; high: number; medium: number; low: number }; verdict: string; source: { origin: "sourcify" | "request"; match: (string) | (null); contractName: (string) | (null); files: number; lines: number; pragma: (string) | (null); compiler: string | null; compilerStated: (string) | (null); pragmaReplaced: boolean; typed: boolean; compilerError: (string) | (null); packages: (string)[] }; examined: { contracts: (string)[]; rules: (string)[]; classes: ("reentrancy" | "unchecked-calls" | "access-control" | "arithmetic" | "randomness" | "time" | "denial-of-service" | "front-running" | "storage" | "upgrades" | "token-flow" | "payments" | "signatures" | "encoding" | "callbacks" | "slippage" | "share-price" | "oracles" | "price-manipulation")[]; classesOf: number }; notExamined: (string)[]; classesNotExamined: ({ class: string; what: string })[]; contractAddress: string | null; implementation: string | null; chain: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana") | (null); codeHash: string | null; blockNumber: (number) | (null); disclaimer: string } & Answered;
    usd: '10.00';
  };
  /** Yields on Solana by DefiLlama, highest first, with the warnings about each. */
  'solana-yield-finder': {
    in: { token?: string; minApy?: number; maxRisk?: "low" | "medium" | "high"; protocol?: string; type?: "any" | "single" | "multi"; minTvlUsd?: number; limit?: number };
    out: { topYields: ({ id: string; protocol: string; token: string; pool: (string) | (null); type: ("single" | "multi") | (null); apyPct: number; apyBasePct: number | null; apyRewardPct: number | null; apyMean30dPct: number | null; tvlUsd: number; risk: "low" | "medium" | "high"; riskPoints: number; riskReasons: (string)[]; url: string })[]; totalOpportunities: number; scannedPools: number; network: "solana"; dataSource: string; cacheAge: number; disclaimer: string } & Answered;
    usd: '0.25';
  };
  /** The tone of the last day's news on a listed company, with links, and what it filed with the SEC of late. */
  'stock-sentiment': {
    in: { symbol: string; includeNews?: boolean; includeTechnicals?: boolean; includeInstitutional?: boolean };
    out: { data: { symbol: string; companyName: (string) | (null); overallSentiment: "bullish" | "bearish" | "neutral"; sentimentScore: number; confidence: "low" | "medium" | "high"; parts: ({ name: string; value: (number) | (null); weight: number; sample: (number) | (null); says: string; url: (string) | (null); asOf: string | null })[]; keyDrivers: ({ theme: string; count: number })[]; newsAnalysis: ({ recentHeadlines: ({ title: string; url: string; tone: number | null; source: "gdelt" | "hackernews" })[]; overallTone: string; majorEvents: ({ form: string; date: string; title: (string) | (null); url: string })[]; documents: number }) | (null); institutionalActivity: ({ recentFilings: ({ form: string; date: string; title: (string) | (null); url: string })[]; note: string }) | (null); assetClass: "equity"; market: "stocks"; dataSource: string }; disclaimer: string } & Answered;
    usd: '0.40';
  };
  /** Name, symbol, decimals and total supply of a token, as its contract on an EVM chain says now. */
  'token-metadata': {
    in: { tokenAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana" };
    out: { name: (string) | (null); symbol: (string) | (null); decimals: (number) | (null); totalSupply: string | null; totalSupplyFormatted: string | null; address: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; chainId: number; isNative: boolean; blockNumber: number } & Answered;
    usd: '0.10';
  };
  /** Spot price, 24 h change and volume, and market cap of a token, each with its source. */
  'token-price': {
    in: (unknown);
    out: { price: number; change24h: number | null; volume24h: (number) | (null); marketCap: (number) | (null); symbol: (string) | (null); name: (string) | (null); tokenAddress: string | null; chain: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana") | (null); liquidityUsd: (number) | (null); source: string; fieldSources: { price: string; change24h: string | null; volume24h: string | null; marketCap: string | null } } & Answered;
    usd: '0.25';
  };
  /** Sentiment on a token from news tone, votes, fear and greed and its returns: each part with weight, sample and link. */
  'token-sentiment': {
    in: (unknown);
    out: { tokenSymbol: string; name: (string) | (null); sentiment: "bullish" | "bearish" | "neutral"; score: number; momentum: string; change24h: number | null; change7d: number | null; confidence: "low" | "medium" | "high"; record: ({ trades: number; hits: number; hitRatePercent: number | null; expectancyPercent: number | null; expectancyErrorPercent: number | null; unresolved: boolean; holdingPercent: number | null; feePercentPerTrade: number; from: string | null; to: string | null; outOfSample: boolean }) | (null); signals: ({ name: string; value: (number) | (null); weight: number; sample: (number) | (null); says: string; url: (string) | (null); asOf: string | null })[]; sampleSize: number; articles: ({ title: string; url: string; tone: number | null; source: "gdelt" | "hackernews" })[]; window: string; disclaimer: string } & Answered;
    usd: '0.25';
  };
  /** BUY, SELL or HOLD for a pair from a published indicator vote, with entry, target and stop from its volatility. */
  'trade-signals': {
    in: { token?: string; timeframe?: "5m" | "15m" | "1h" | "4h" | "1d"; riskLevel?: "low" | "medium" | "high" };
    out: { signal: "BUY" | "SELL" | "HOLD"; entry: number; target: number | null; stopLoss: number | null; confidence: number; record: { trades: number; hits: number; hitRatePercent: number | null; expectancyPercent: number | null; expectancyErrorPercent: number | null; unresolved: boolean; holdingPercent: number | null; feePercentPerTrade: number; from: string | null; to: string | null; outOfSample: boolean }; riskReward: number | null; score: number; threshold: number; holdReason: string | null; takerFeePercent: number; votes: ({ indicator: "trend" | "macd" | "rsi" | "bollinger"; vote: (number) | (null); weight: number; because: string })[]; indicators: { rsi14: number | null; macd: ({ macd: number; signal: number; histogram: number }) | (null); ema20: number | null; ema50: number | null; ema200: number | null; atr14: number | null; bollinger: ({ upper: number; middle: number; lower: number; percentB: number | null }) | (null) }; token: string; pair: string; exchange: string; timeframe: string; riskLevel: string; bars: number; asOf: string; disclaimer: string } & Answered;
    usd: '0.75';
  };
  /** A signal for a pair from the indicators you choose: each with its value and vote, entry, target and stop. */
  'trading-signal': {
    in: { pair: string; timeframe?: "1m" | "5m" | "15m" | "1h" | "4h" | "1d"; indicators?: ("trend" | "sma" | "macd" | "rsi" | "bollinger" | "stochastic" | "williams" | "roc" | "atr")[]; riskLevel?: "low" | "medium" | "high" };
    out: { signal: "BUY" | "SELL" | "HOLD"; confidence: number; record: { trades: number; hits: number; hitRatePercent: number | null; expectancyPercent: number | null; expectancyErrorPercent: number | null; unresolved: boolean; holdingPercent: number | null; feePercentPerTrade: number; from: string | null; to: string | null; outOfSample: boolean }; score: number; threshold: number; holdReason: string | null; takerFeePercent: number; entryPrice: number; targetPrice: number | null; stopLoss: number | null; riskReward: number | null; technicalIndicators: ({ indicator: "trend" | "sma" | "macd" | "rsi" | "bollinger" | "stochastic" | "williams" | "roc" | "atr"; value: number | null; signal: "BUY" | "SELL" | "NEUTRAL" | "NONE"; weight: number; because: string })[]; reasoning: string; pair: string; exchange: string; timeframe: string; riskLevel: string; bars: number; asOf: string; disclaimer: string } & Answered;
    usd: '1.00';
  };
  /** An unsigned EIP-1559 transaction, ready to be signed: nonce, gas and fees from the chain, and what a trial run says. */
  'transaction-builder': {
    in: { fromAddress: string; toAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; value?: string; data?: string; amount?: unknown; tokenAddress?: string };
    out: { chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc"; transaction: { chainId: number; from: string; to: string; value: string; data: string; nonce: number; gas: (string) | (null); maxFeePerGas: string; maxPriorityFeePerGas: string; type: number }; gasEstimate: (number) | (null); gasEstimateUsd: (number) | (null); simulation: { success: boolean; revertReason: (string) | (null) }; unsignedSerialized: string | null; preflight: ({ verdict: "safe" | "caution" | "unknown" | "danger"; findings: ({ pattern: "approval_to_account" | "approval_to_open_executor" | "unlimited_approval" | "approval_to_unverified" | "approval" | "operator_for_all" | "approval_by_signature" | "long_lived_signature" | "expired_signature" | "other_signer" | "other_chain" | "no_chain" | "other_contract" | "undeclared_fields" | "unread_signature" | "unread_witness" | "transfer" | "transfer_of_another" | "transfer_to_token" | "standing_allowance_used" | "empties_balance" | "takes_without_giving" | "hidden_approval" | "hidden_outflow" | "token_misstates" | "impostor_token" | "lookalike_address" | "delegatecall_to_unknown" | "upgrade" | "upgrade_to_unknown" | "owner_change" | "control_change" | "account_delegation" | "account_delegation_everywhere" | "bait_function" | "order" | "order_gives_away" | "refund_payment" | "contract_creation" | "unread_call" | "no_code_called" | "reading_cut" | "not_simulated" | "would_fail" | "sanctioned" | "mixer" | "not_screened" | "unchecked_addresses" | "authority_change" | "account_closed_to_other" | "account_assigned" | "durable_nonce" | "nonce_authority" | "permanent_delegate" | "transfer_hook" | "transfer_fee" | "freezable_token" | "unknown_program" | "unread_instruction" | "hidden_accounts" | "token_minted"; severity: "info" | "caution" | "unknown" | "danger"; address: (string) | (null) })[] }) | (null); blockNumber: number } & Answered;
    usd: '0.30';
  };
  /** What an unsigned transaction or typed data would do before you sign it: simulated balance changes, approvals, who takes part, drainer patterns, one verdict. */
  'transaction-preflight': {
    in: (unknown);
    out: { verdict: "safe" | "caution" | "unknown" | "danger"; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; kind: "evm-transaction" | "evm-typed-data" | "solana-transaction"; signer: string; findings: ({ pattern: "approval_to_account" | "approval_to_open_executor" | "unlimited_approval" | "approval_to_unverified" | "approval" | "operator_for_all" | "approval_by_signature" | "long_lived_signature" | "expired_signature" | "other_signer" | "other_chain" | "no_chain" | "other_contract" | "undeclared_fields" | "unread_signature" | "unread_witness" | "transfer" | "transfer_of_another" | "transfer_to_token" | "standing_allowance_used" | "empties_balance" | "takes_without_giving" | "hidden_approval" | "hidden_outflow" | "token_misstates" | "impostor_token" | "lookalike_address" | "delegatecall_to_unknown" | "upgrade" | "upgrade_to_unknown" | "owner_change" | "control_change" | "account_delegation" | "account_delegation_everywhere" | "bait_function" | "order" | "order_gives_away" | "refund_payment" | "contract_creation" | "unread_call" | "no_code_called" | "reading_cut" | "not_simulated" | "would_fail" | "sanctioned" | "mixer" | "not_screened" | "unchecked_addresses" | "authority_change" | "account_closed_to_other" | "account_assigned" | "durable_nonce" | "nonce_authority" | "permanent_delegate" | "transfer_hook" | "transfer_fee" | "freezable_token" | "unknown_program" | "unread_instruction" | "hidden_accounts" | "token_minted"; severity: "info" | "caution" | "unknown" | "danger"; address: (string) | (null); at: string; detail: string })[]; approvals: ({ owner: string; token: string; spender: string; amountRaw: (string) | (null); isUnlimited: boolean; expiresAtUnixS: (string) | (null); by: "call" | "signature" | "simulation"; at: string })[]; transfers: ({ token: (string) | (null); from: string; to: string; amountRaw: string; by: "call" | "signature" | "simulation"; at: string })[]; orders: ({ gives: ({ token: (string) | (null); amountRaw: string; isNft: boolean })[]; gets: ({ token: (string) | (null); amountRaw: string; isNft: boolean })[]; expiresAtUnixS: (string) | (null) })[]; balanceChanges: (({ address: string; isSigner: boolean; token: (string) | (null); symbol: (string) | (null); decimals: (number) | (null); changeRaw: string; change: (string) | (null); measured: boolean })[]) | (null); simulation: ({ method: "eth_simulateV1" | "debug_traceCall" | "eth_call" | "simulateTransaction"; success: boolean; revertReason: (string) | (null); gasUsed: (string) | (null) }) | (null); calls: ({ at: string; to: string; valueWei: string; selector: string | null; function: string | null })[]; counterparties: ({ address: string; account: ("none" | "contract" | "delegated") | (null); known: string | null; sourceIsPublished: boolean | null; sanctioned: boolean | null; mixer: boolean | null })[]; typedData: ({ form: string | null; primaryType: string; digest: string }) | (null); coverage: ({ check: "decoding" | "simulation" | "balances" | "lookup-tables" | "counterparties" | "sanctions-oracle" | "sanctions-lists" | "published-source" | "tokens" | "price-of-order"; done: boolean; why: string | null })[]; atHeight: number; disclaimer: string } & Answered;
    usd: '0.15';
  };
  /** Tokens that trend on decentralized exchanges now, by trading and attention, paid promotion marked as such. */
  'trending-tokens': {
    in: { chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; limit?: number; timeframe?: string };
    out: { tokens: ({ rank: number; symbol: (string) | (null); name: (string) | (null); address: string | null; chain: (string) | (null); priceUsd: (number) | (null); change24h: number | null; volume24h: (number) | (null); liquidityUsd: (number) | (null); reason: string; paidPromotion: boolean | null })[]; count: number; chain: string | null; window: string } & Answered;
    usd: '0.50';
  };
  /** NDVI and EVI of the 250 m pixel at a point (500 m where Terra has ended), its quality, its last months, and its change from other years. */
  'vegetation': {
    in: { lat: number; lon: number; date?: string };
    out: { data: { ndvi: number; evi: number | null; coverClass: "water, snow or ice" | "bare" | "sparse" | "moderate" | "dense"; healthStatus: ("stressed" | "moderate" | "healthy" | "excellent") | (null); anomaly: number | null; trend: ("rising" | "steady" | "falling") | (null); quality: "good" | "marginal" | "snow or ice" | "cloudy"; product: "MOD13Q1" | "VNP13A1"; compositeDate: string; observedAt: string; compositeEnd: string; series: ({ date: string; ndvi: number | null; quality: string | null })[]; dataResolutionM: number; pixelLat: number; pixelLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.15';
  };
  /** The same as vegetation: NDVI and EVI of the 250 m pixel at a point, its quality, its last months and its change. */
  'vegetation-health': {
    in: { lat: number; lon: number; date?: string };
    out: { data: { ndvi: number; evi: number | null; coverClass: "water, snow or ice" | "bare" | "sparse" | "moderate" | "dense"; healthStatus: ("stressed" | "moderate" | "healthy" | "excellent") | (null); anomaly: number | null; trend: ("rising" | "steady" | "falling") | (null); quality: "good" | "marginal" | "snow or ice" | "cloudy"; product: "MOD13Q1" | "VNP13A1"; compositeDate: string; observedAt: string; compositeEnd: string; series: ({ date: string; ndvi: number | null; quality: string | null })[]; dataResolutionM: number; pixelLat: number; pixelLon: number; distanceKm: number; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.15';
  };
  /** Registers your agent on the ERC-8004 identity registry, hands the identity to your wallet and gives the transactions. */
  'verified-agent-identity': {
    in: { agentId: string; agentName: string; capabilities?: (string)[]; description?: string; image?: string; services?: ({ name: string; endpoint: string; version?: string })[]; x402Support?: boolean; walletAddress?: string; signature?: string };
    out: { agentId: string; agentName: string; status: "registered"; tokenId: string; owner: string; transactionHash: string; transferTransactionHash: string | null; agentURI: string; registrationFile: { [field: string]: unknown }; registration: { standard: "ERC-8004"; chainId: number; registry: string; agentRegistry: string }; verified: boolean; verifiedStatement: string | null } & Answered;
    usd: '5.00';
  };
  /** Sanctions, mixers, age and activity of an EVM wallet from dated lists and the chain itself, scored point by point. */
  'wallet-risk': {
    in: { walletAddress: string; chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana" };
    out: { walletAddress: string; chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; riskScore: number; riskTier: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL"; complianceFlags: (string)[]; parts: ({ code: string; points: number | null; maxPoints: number; because: string })[]; coverage: number; analysis: { sanctioned: boolean; sanctionsOracles: ({ chain: string; sanctioned: boolean | null })[]; mixerInteractions: (number) | (null); sanctionedCounterparties: (number) | (null); transactionCount: number; firstActivityAt: (string) | (null); ageDays: number | null; accountKind: "externally_owned" | "contract" | "delegated"; delegate: string | null; counterparties: (number) | (null); searchedFromBlock: (number) | (null); blockNumber: number }; evidence: ({ code: string; address: string; list: string; uid: string; name: string; programs: (string)[]; listPublishedAt: string; transactionHash: string | null })[]; lists: ({ list: string; title: string; publishedAt: string; confirmedAt: string; sha256: string; entries: number })[]; recommendation: string; disclaimer: string } & Answered;
    usd: '0.50';
  };
  /** A satellite picture of a place and time from NASA GIBS: verified image and tile links, size and hash. */
  'weather-imagery': {
    in: { lat?: number; lon?: number; layer?: string; date?: (string); bbox?: (number)[] };
    out: { data: { imageUrl: string; thumbnailUrl: string; tileUrl: string; tileBbox: (number)[]; layer: string; date: string; bbox: (number)[]; bboxFrom: "request" | "around lat and lon" | "whole layer"; width: number; height: number; resolution: string; degreesPerPixel: number; satellite: string; imageBytes: number; sha256: string; image: ({ url: string; mediaType: "image/png"; widthPx: number; heightPx: number; layer: string; shows: string; observedAt: string; boundingBox: (number)[]; marker: ({ lat: number; lon: number }) | (null); attribution: string; expiresAt: string }) | (null) }; poweredBy: string } & Answered;
    usd: '0.15';
  };
  /** The latest observation of the nearest official weather station in the United States, with units, quality flags and distance. */
  'weather-station-data': {
    in: (unknown);
    out: { data: { stationId: string; stationName: (string) | (null); location: { lat: number; lon: number; elevationM: number | null }; distanceKm: number | null; readings: { temperature: ({ value: number; unit: "celsius"; quality: string }) | (null); dewpoint: ({ value: number; unit: "celsius"; quality: string }) | (null); humidity: ({ value: number; unit: "percent"; quality: string }) | (null); pressure: ({ value: number; unit: "hPa"; quality: string }) | (null); windSpeed: ({ value: number; unit: "km/h"; quality: string }) | (null); windGust: ({ value: number; unit: "km/h"; quality: string }) | (null); windDirection: ({ value: number; unit: "degrees"; quality: string }) | (null); visibility: ({ value: number; unit: "m"; quality: string }) | (null); precipitation: ({ value: number; unit: "mm"; quality: string }) | (null) }; description: string; timestamp: string; quality: "verified" | "preliminary" }; poweredBy: string } & Answered;
    usd: '0.10';
  };
  /** The largest transfers of well-known tokens in the last minutes on each chain, read from the chains' own events and priced in USD. */
  'whale-alerts': {
    in: { chain?: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; chains?: ("ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana")[]; minValueUsd?: number; tokenAddress?: string; limit?: number };
    out: { alerts: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; token: string; tokenAddress: string; amount: string; valueUsd: number; direction: "transfer" | "mint" | "burn"; from: string; to: string; txHash: string; logIndex: number; blockNumber: number; timestamp: (string) | (null) })[]; count: number; totalFound: number; thresholdUsd: number; scanned: ({ chain: "ethereum" | "base" | "polygon" | "arbitrum" | "optimism" | "bsc" | "solana"; fromBlock: (number) | (null); toBlock: (number) | (null); transfers: number; tokens: (string)[]; error: ("not_configured" | "unavailable" | "not_evm" | "no_token_priced") | (null) })[] } & Answered;
    usd: '0.35';
  };
}

export type ServiceName = keyof Services;
