import { qrSvg } from "../../service/src/platform/qr/qr-svg.ts";

/** What a careful site shows while a person logs in by QR code, about as long as the service's own page. */
export function renderInteractionPage(page: {
  issuer: string;
  uid: string;
  clientName: string;
  host: string;
  bytes: number;
}): string {
  const text = `svc:login?sess=${page.uid}&conn=${encodeURIComponent(`${page.issuer}/interaction/${page.uid}`)}&type=callback`;
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Log in to ${escape(page.clientName)}</title><link rel="stylesheet" href="/assets/page.css"><script src="/assets/page.js" defer></script></head>
<body><main class="card"><header><h1>Log in to ${escape(page.clientName)}</h1><p class="badge"><strong>${escape(page.host)}</strong> asks for your identity</p></header>
<section><h2>Scan with your wallet</h2><div class="qr" role="img" aria-label="QR code" data-qr="${escape(text)}">${qrSvg(text)}</div>
<form method="post" action="/interaction/${page.uid}/approve"><button>Approve</button></form><form method="post" action="/interaction/${page.uid}/abort"><button>Cancel</button></form></section>
<footer><p>${escape(page.issuer)}</p></footer></main><!--`;
  const end = "--></body></html>";
  return html + " ".repeat(Math.max(0, page.bytes - html.length - end.length)) + end;
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escape(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? "");
}
