/** ISO 3166-1 alpha-3, all 249. */
const isoCodes =
  "ABW AFG AGO AIA ALA ALB AND ARE ARG ARM ASM ATA ATF ATG AUS AUT AZE BDI BEL BEN BES BFA BGD BGR BHR BHS BIH BLM BLR " +
  "BLZ BMU BOL BRA BRB BRN BTN BVT BWA CAF CAN CCK CHE CHL CHN CIV CMR COD COG COK COL COM CPV CRI CUB CUW CXR CYM CYP " +
  "CZE DEU DJI DMA DNK DOM DZA ECU EGY ERI ESH ESP EST ETH FIN FJI FLK FRA FRO FSM GAB GBR GEO GGY GHA GIB GIN GLP GMB " +
  "GNB GNQ GRC GRD GRL GTM GUF GUM GUY HKG HMD HND HRV HTI HUN IDN IMN IND IOT IRL IRN IRQ ISL ISR ITA JAM JEY JOR JPN " +
  "KAZ KEN KGZ KHM KIR KNA KOR KWT LAO LBN LBR LBY LCA LIE LKA LSO LTU LUX LVA MAC MAF MAR MCO MDA MDG MDV MEX MHL MKD " +
  "MLI MLT MMR MNE MNG MNP MOZ MRT MSR MTQ MUS MWI MYS MYT NAM NCL NER NFK NGA NIC NIU NLD NOR NPL NRU NZL OMN PAK PAN " +
  "PCN PER PHL PLW PNG POL PRI PRK PRT PRY PSE PYF QAT REU ROU RUS RWA SAU SDN SEN SGP SGS SHN SJM SLB SLE SLV SMR SOM " +
  "SPM SRB SSD STP SUR SVK SVN SWE SWZ SXM SYC SYR TCA TCD TGO THA TJK TKL TKM TLS TON TTO TUN TUR TUV TWN TZA UGA UKR " +
  "UMI URY USA UZB VAT VCT VEN VGB VIR VNM VUT WLF WSM YEM ZAF ZMB ZWE";

/** Further codes in documents (ICAO 9303-3, section 5): Kosovo, stateless persons, refugees, unspecified. */
const documentCodes = "RKS XXA XXB XXC XXX";

const codes = new Set(`${isoCodes} ${documentCodes}`.split(" "));

/** The 27 members of the European Union, then the four of EFTA. */
const euEfta = new Set(
  (
    "AUT BEL BGR CYP CZE DEU DNK ESP EST FIN FRA GRC HRV HUN IRL ITA LTU LUX LVA MLT NLD POL PRT ROU SVK SVN SWE " +
    "CHE ISL LIE NOR"
  ).split(" "),
);

export function isCountryCode(text: string): boolean {
  return codes.has(text);
}

/** The most nationalities of one person. */
const nationalitiesMax = 10;

/** What is wrong with the value of a field that names a country, or for a nationality several; null if it is right. */
export function faultOfCountry(data: string, field: string): string | null {
  const countries = data.split(",");
  const countriesMax = field.endsWith("_NATIONALITY") ? nationalitiesMax : 1;
  if (!countries.every(isCountryCode)) return "must be a country of ISO 3166-1 alpha-3";
  if (new Set(countries).size < countries.length) return "names a country twice";
  return countries.length <= countriesMax ? null : "names too many countries";
}

export function isInEuEfta(code: string): boolean {
  return euEfta.has(code);
}
