import { type Address, checksumAddress } from "@svc/protocol";
import type { GivenCompanyField } from "./company-record.ts";

const director = "director-1";
const owner = "ubo-1";

/** The record of an invented company, for demonstrations and the sandbox. */
export function sampleCompanyFields(business: Address): GivenCompanyField[] {
  return [
    { field: "BUSINESS_LEGAL_NAME", data: "Muster Handels AG" },
    { field: "BUSINESS_TRADE_NAME", data: "Muster Handel" },
    { field: "BUSINESS_REGISTRATION_NUMBER", data: "CHE-123.456.788" },
    { field: "BUSINESS_REGISTRATION_AUTHORITY", data: "RA000549" },
    { field: "BUSINESS_JURISDICTION", data: "CH-ZH" },
    { field: "BUSINESS_COMPANY_TYPE", data: "CORPORATION" },
    { field: "BUSINESS_LEGAL_FORM", data: "Aktiengesellschaft" },
    { field: "BUSINESS_INCORPORATION_COUNTRY", data: "CHE" },
    { field: "BUSINESS_INCORPORATION_DATE", data: "2012-04-02" },
    { field: "BUSINESS_VAT_NUMBER", data: "CHE-123.456.788 MWST" },
    { field: "BUSINESS_LEGAL_ADDRESS", data: "Musterstrasse 1, 8001 Zürich, Schweiz" },
    { field: "BUSINESS_ADDRESS_STREET", data: "Musterstrasse 1" },
    { field: "BUSINESS_ADDRESS_CITY", data: "Zürich" },
    { field: "BUSINESS_ADDRESS_ZIP_CODE", data: "8001" },
    { field: "BUSINESS_ADDRESS_COUNTRY", data: "CHE" },
    { field: "BUSINESS_WEBSITE", data: "https://muster.example/" },
    { field: "BUSINESS_EMAIL", data: "office@muster.example" },
    { field: "BUSINESS_PHONE", data: "+41445550100" },
    { field: "BUSINESS_INDUSTRY_CODE", data: "NOGA:469000" },
    { field: "BUSINESS_REGISTERED_CAPITAL", data: "100000.00 CHF" },
    { field: "BUSINESS_EMPLOYEES_NUMBER", data: "10-49" },
    { field: "BUSINESS_REGISTRY_STATUS", data: "ACTIVE" },
    { field: "BUSINESS_REGISTRY_EXTRACT_DOCUMENT", data: "VERIFIED" },
    { field: "BUSINESS_VERIFIED", data: "true" },
    { field: "BUSINESS_VERIFICATION_STATUS", data: "VERIFIED" },
    { field: "BUSINESS_WALLET_ADDRESS", data: checksumAddress(business) },
    { field: "BUSINESS_SANCTIONS_SCREENING", data: "CLEAR" },
    { field: "BUSINESS_PEP_SCREENING", data: "CLEAR" },
    { field: "BUSINESS_AML_VERDICT", data: "CLEAR" },
    { field: "BUSINESS_DIRECTOR_COUNT", data: "1" },
    { field: "BUSINESS_UBO_COUNT", data: "1" },
    { field: "BUSINESS_SIGNING_RULE", data: "SOLE" },
    { field: "BUSINESS_DIRECTOR_NAME", subject: director, data: "Sandra Muster" },
    { field: "BUSINESS_DIRECTOR_DOB", subject: director, data: "1975-03-09" },
    { field: "BUSINESS_DIRECTOR_NATIONALITY", subject: director, data: "CHE" },
    { field: "BUSINESS_DIRECTOR_ROLE", subject: director, data: "CHAIR" },
    { field: "BUSINESS_UBO_NAME", subject: owner, data: "Sandra Muster" },
    { field: "BUSINESS_UBO_NATIONALITY", subject: owner, data: "CHE" },
    { field: "BUSINESS_UBO_DIRECT_OWNERSHIP_PERCENTAGE", subject: owner, data: "62.5" },
    { field: "BUSINESS_DECLARED_CONTROL_SCHEME", data: "Majority of shares" },
  ];
}
