// Signs the request that opens a session, by AWS Signature Version 4. The secret does not leave the
// browser.
import { hex, hmac, sha256 } from './sha256';

const encoder = new TextEncoder();
const REGION = 'us-east-1'; // any: a session is for all regions
const SERVICE = 'trainyard';

export interface Keys {
  id: string;
  secret: string;
  token: string; // '' for long-term keys
}

// Returns the headers of a signed POST of `body` to `path`.
export function sign(
  host: string,
  path: string,
  body: string,
  keys: Keys,
  now: Date,
): Record<string, string> {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, '');
  const day = time.slice(0, 8);
  const scope = `${day}/${REGION}/${SERVICE}/aws4_request`;
  const bodyHash = hex(sha256(encoder.encode(body)));
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    host,
    'x-amz-content-sha256': bodyHash,
    'x-amz-date': time,
  };
  if (keys.token) headers['x-amz-security-token'] = keys.token;
  const names = Object.keys(headers).sort();
  const signed = names.join(';');
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join('');
  const request = ['POST', path, '', lines, signed, bodyHash].join('\n');
  const text = ['AWS4-HMAC-SHA256', time, scope, hex(sha256(encoder.encode(request)))].join('\n');
  let key = encoder.encode('AWS4' + keys.secret) as Uint8Array;
  for (const part of [day, REGION, SERVICE, 'aws4_request']) key = hmac(key, encoder.encode(part));
  const signature = hex(hmac(key, encoder.encode(text)));
  delete headers.host; // the browser's own
  headers.authorization =
    `AWS4-HMAC-SHA256 Credential=${keys.id}/${scope}, SignedHeaders=${signed}, ` +
    `Signature=${signature}`;
  return headers;
}
