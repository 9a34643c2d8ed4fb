// Every KYB route of merchants, with the entitlement that it takes.

/** What an organization needs for a route. */
export type Needed = "kyb:read" | "kyb:data-request" | "kyb:signature";

/** What each route needs. A route that is missing here fails a test: nobody adds one without saying who may call it. */
export const matrix: Record<string, Needed> = {
  "GET /api/v1/kyb/status/{wallet}": "kyb:read",
  "GET /api/v1/kyb/verify/{wallet}": "kyb:read",
  "GET /api/v1/kyb/members/{wallet}": "kyb:read",
  "GET /api/v1/kyb/pricing": "kyb:read",
  "GET /api/v1/kyb/billing/account": "kyb:read",
  "GET /api/v1/kyb/billing/charges": "kyb:read",
  "PUT /api/v1/kyb/webhook-endpoint": "kyb:read",
  "GET /api/v1/kyb/webhook-endpoint": "kyb:read",
  "POST /api/v1/kyb/webhook-endpoint/rotate-secret": "kyb:read",
  "POST /api/v1/kyb/webhook-endpoint/reactivate": "kyb:read",
  "POST /api/v1/kyb/webhook-endpoint/test": "kyb:read",
  // Lists only events of requests that the organization may make.
  "GET /api/v1/kyb/events": "kyb:read",
  "GET /api/v1/kyb/events/{id}/deliveries": "kyb:read",
  "POST /api/v1/kyb/events/{id}/redeliver": "kyb:read",
  "POST /api/v1/kyb/valid": "kyb:data-request",
  "POST /api/v1/kyb/data-requests/quote": "kyb:data-request",
  "POST /api/v1/kyb/data-requests": "kyb:data-request",
  "GET /api/v1/kyb/data-requests": "kyb:data-request",
  "GET /api/v1/kyb/data-requests/{id}": "kyb:data-request",
  "POST /api/v1/kyb/data-requests/{id}/cancel": "kyb:data-request",
  "GET /api/v1/kyb/data-requests/{id}/release": "kyb:data-request",
  "GET /api/v1/kyb/data-requests/{id}/proofs": "kyb:data-request",
  "GET /api/v1/kyb/data-requests/{id}/events": "kyb:data-request",
  "GET /api/v1/kyb/data-requests/{id}/deliveries": "kyb:data-request",
  "POST /api/v1/kyb/data-requests/{id}/redeliver": "kyb:data-request",
  "POST /api/v1/kyb/data-requests/offers": "kyb:data-request",
  "POST /api/v1/kyb/signature-requests": "kyb:signature",
  "GET /api/v1/kyb/signature-requests": "kyb:signature",
  "GET /api/v1/kyb/signature-requests/{id}": "kyb:signature",
  "GET /api/v1/kyb/signature-requests/{id}/signature": "kyb:signature",
  "POST /api/v1/kyb/signature-requests/{id}/cancel": "kyb:signature",
  "GET /api/v1/kyb/signature-requests/{id}/events": "kyb:signature",
  "GET /api/v1/kyb/signature-requests/{id}/deliveries": "kyb:signature",
  "POST /api/v1/kyb/signature-requests/{id}/redeliver": "kyb:signature",
  "POST /api/v1/kyb/signature-requests/offers": "kyb:signature",
  // An offer of either kind is for organizations that may make one of that kind.
  "GET /api/v1/kyb/offers/{id}": "kyb:read",
  "POST /api/v1/kyb/offers/{id}/cancel": "kyb:read",
};

/** Whether a route, by method and path, is one that the wallets of members call. */
export const isOfMembers = (route: string): boolean =>
  /\/w\/(?:inbox|votes|businesses|f\/|push)/.test(route);
