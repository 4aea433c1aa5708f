// Reads buckets and objects of S3, with the rights of the session. Lists are S3's XML. Their texts, and the
// bytes of objects, are shown only as plain text or as images.
import { ApiError, fetchAgain, signInAgain } from './api';

export interface Bucket {
  name: string;
  created: number; // seconds since 1970
}

export interface StoredObject {
  key: string;
  size: number;
  modified: number;
}

export interface Listing {
  folders: string[]; // prefixes that end in a slash
  objects: StoredObject[];
  next: string; // a token; '': this is the last page
}

type What = 'buckets' | 'objects' | 'text' | 'image' | 'download';

export const IMAGE_BYTES_MAX = 16 << 20; // as the server
const IMAGE = /\.(png|jpe?g|gif|webp)$/i;
const TABLE = /\.(csv|tsv)$/i;

export function address(what: What, values: Record<string, string>): string {
  return `/console/objects?${new URLSearchParams({ what, ...values })}`;
}

function textOf(parent: Element | Document, name: string): string {
  return parent.getElementsByTagName(name)[0]?.textContent ?? '';
}

// Returns the text of an error: S3's errors have a code and a message, the console's are JSON.
function failure(status: number, text: string, xml?: Document | null): ApiError {
  const message = xml ? textOf(xml, 'Message') : '';
  if (message) return new ApiError(status, xml ? textOf(xml, 'Code') : '', message);
  let own = '';
  try {
    own = (JSON.parse(text) as { message?: string }).message ?? '';
  } catch {
    own = text.replace(/<[^>]*>/g, ' ').trim();
  }
  return new ApiError(status, '', own || `HTTP status ${status}`);
}

// Uses XMLHttpRequest, which parses XML without the functions that the Trusted Types policy forbids.
function readXml(path: string): Promise<Document> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('GET', path);
    request.responseType = 'document';
    request.overrideMimeType('application/xml');
    request.onload = () => {
      if (request.status === 401) signInAgain();
      const xml = request.responseXML;
      if (request.status === 200 && xml) resolve(xml);
      else reject(failure(request.status, '', xml));
    };
    request.onerror = () => reject(new ApiError(0, '', 'The server did not answer.'));
    request.send();
  });
}

const secondsOf = (text: string): number => Date.parse(text) / 1000 || 0;
// Decodes a name of a list with encoding-type=url.
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text.replace(/\+/g, ' '));
  } catch {
    return text;
  }
};

export function bucketsOf(xml: Document): Bucket[] {
  return [...xml.getElementsByTagName('Bucket')].map((one) => ({
    name: textOf(one, 'Name'),
    created: secondsOf(textOf(one, 'CreationDate')),
  }));
}

export function listingOf(xml: Document, prefix: string): Listing {
  return {
    folders: [...xml.getElementsByTagName('CommonPrefixes')].map((one) =>
      decoded(textOf(one, 'Prefix')),
    ),
    objects: [...xml.getElementsByTagName('Contents')]
      .map((one) => ({
        key: decoded(textOf(one, 'Key')),
        size: Number(textOf(one, 'Size')),
        modified: secondsOf(textOf(one, 'LastModified')),
      }))
      .filter((one) => one.key !== prefix || !prefix.endsWith('/')), // without the folder itself
    next: textOf(xml, 'NextContinuationToken'),
  };
}

export async function listBuckets(region: string): Promise<Bucket[]> {
  return bucketsOf(await readXml(address('buckets', { region })));
}

export async function listObjects(
  region: string,
  bucket: string,
  prefix: string,
  token: string,
): Promise<Listing> {
  return listingOf(await readXml(address('objects', { region, bucket, prefix, token })), prefix);
}

export type Preview =
  | { kind: 'image'; url: string }
  | { kind: 'table'; rows: string[][]; more: boolean }
  | { kind: 'text'; text: string; more: boolean }
  | { kind: 'none'; why: string };

export async function readPreview(
  region: string,
  bucket: string,
  object: StoredObject,
): Promise<Preview> {
  const { key, size } = object;
  if (size === 0) return { kind: 'none', why: 'The object is empty.' };
  if (IMAGE.test(key))
    return size > IMAGE_BYTES_MAX
      ? { kind: 'none', why: 'The picture is too large to be shown.' }
      : { kind: 'image', url: address('image', { region, bucket, key }) };
  const answer = await fetchAgain(address('text', { region, bucket, key }));
  if (answer.status === 401) signInAgain();
  const text = await answer.text();
  if (!answer.ok) throw failure(answer.status, text);
  return previewOf(key, text, size);
}

// `text`: the beginning of the object; `size`: the bytes of the whole object.
export function previewOf(key: string, text: string, size: number): Preview {
  if (text.includes('\0')) return { kind: 'none', why: 'The object is not text.' };
  const more = new TextEncoder().encode(text).length < size;
  if (TABLE.test(key)) {
    const rows = rowsOf(text, key.toLowerCase().endsWith('.tsv') ? '\t' : ',', more);
    return { kind: 'table', rows: rows.slice(0, ROWS_MAX), more: more || rows.length > ROWS_MAX };
  }
  const lines = text.split('\n');
  const cut = lines.slice(0, LINES_MAX).map((line) => line.slice(0, COLUMNS_MAX));
  return { kind: 'text', text: cut.join('\n'), more: more || lines.length > LINES_MAX };
}

const ROWS_MAX = 200;
const CELLS_MAX = 50; // of a row
const CELL_CHARACTERS_MAX = 500;
const LINES_MAX = 2000;
const COLUMNS_MAX = 2000;

// Parses the beginning of a CSV file (RFC 4180). `cut`: the last row may be incomplete and is left out.
export function rowsOf(text: string, separator: string, cut: boolean): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  let quoted = false;
  const endCell = () => {
    if (row.length < CELLS_MAX) row.push(cell.slice(0, CELL_CHARACTERS_MAX));
    cell = '';
  };
  for (let at = 0; at < text.length && rows.length <= ROWS_MAX; at++) {
    const c = text[at]!;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[at + 1] === '"') cell += text[++at];
      else quoted = false;
    } else if (c === '"' && cell === '') quoted = true;
    else if (c === separator) endCell();
    else if (c === '\n') {
      if (cell.endsWith('\r')) cell = cell.slice(0, -1);
      endCell();
      rows.push(row);
      row = [];
    } else cell += c;
  }
  if (!cut && (cell || row.length)) {
    endCell();
    rows.push(row);
  }
  return rows;
}
