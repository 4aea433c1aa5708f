// Calls the server's operations by their AWS names, with the rights of the session.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

// Shows the sign-in page, which the server sends for the current URL after the session has ended.
export function signInAgain(): void {
  location.reload();
}

async function failure(answer: Response): Promise<ApiError> {
  const body: unknown = await answer.json().catch(() => ({}));
  const { message, Message, __type } = body as Record<string, string | undefined>;
  const code = (__type ?? '').split('#').pop() ?? '';
  return new ApiError(answer.status, code, message || Message || `HTTP status ${answer.status}`);
}

// Retries requests that only read. A browser ends its requests when the network changes: a laptop
// moves, or a job's network appears on the server's machine. A starting server answers with 503.
export const PAUSES_MILLISECONDS = [200, 1000, 3000];

export async function fetchAgain(address: string, options?: RequestInit): Promise<Response> {
  for (const pause of PAUSES_MILLISECONDS) {
    try {
      const answer = await fetch(address, options);
      if (answer.status !== 503) return answer;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // the request was aborted
    }
    await new Promise((done) => setTimeout(done, pause));
  }
  return fetch(address, options);
}

export async function call<Output>(
  region: string,
  service: string,
  operation: string,
  input: object,
  signal?: AbortSignal,
  send: typeof fetchAgain = fetchAgain,
): Promise<Output> {
  const query = new URLSearchParams({ region });
  const answer = await send(`/console/api/${service}/${operation}?${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input),
    signal,
  });
  if (answer.ok) return (await answer.json()) as Output;
  if (answer.status === 401) signInAgain();
  throw await failure(answer);
}

// Calls an operation that changes something. Sends the request only once: without an answer it is
// unknown whether the server carried it out.
export async function callOnce<Output>(
  region: string,
  service: string,
  operation: string,
  input: object,
): Promise<Output> {
  try {
    return await call<Output>(region, service, operation, input, undefined, fetch);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new ApiError(0, '', 'The server did not answer. Look whether it was done before you try again.');
  }
}

// Reads the pages of a list, up to `max` elements; `more` is true if there are further ones. `members`: the
// member of responses with the elements; `token`: the member with the token of the next page.
export async function callPages<Item>(
  region: string,
  service: string,
  operation: string,
  input: object,
  members: readonly string[],
  max: number,
  token = 'NextToken',
): Promise<{ items: Item[]; more: boolean }> {
  const items: Item[] = [];
  let next: unknown;
  do {
    const page = await call<Record<string, unknown>>(region, service, operation, { ...input, ...(next ? { [token]: next } : {}) });
    for (const member of members) items.push(...((page[member] as Item[] | undefined) ?? []));
    next = page[token];
  } while (next && items.length < max);
  return { items: items.slice(0, max), more: !!next || items.length > max };
}

export interface PageCall {
  Service: string;
  Operation: string;
  Input: object;
}

const RIGHTS_CALLS_MAX = 256; // as the server

// Returns whether the principal may make each call now. Returns false for all without an answer.
export async function mayMake(region: string, calls: readonly PageCall[]): Promise<boolean[]> {
  const query = new URLSearchParams({ region });
  const answer = await fetchAgain(`/console/rights?${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ Calls: calls.slice(0, RIGHTS_CALLS_MAX) }),
  }).catch(() => undefined);
  if (answer?.status === 401) signInAgain();
  const { Allowed } = answer?.ok ? ((await answer.json()) as { Allowed: boolean[] }) : { Allowed: [] };
  return calls.map((_, i) => Allowed[i] === true);
}

export interface Session {
  Principal: string;
  Region: string;
  Regions: string[];
  // The views that the principal may see: "jobs", "queues", "machines", "data", "campaigns", "alarms",
  // "dashboards", "users"; "new": the form for a new job.
  Views: string[];
  Expires: number;
}

export async function readSession(): Promise<Session> {
  const answer = await fetchAgain('/console/session');
  if (answer.ok) return (await answer.json()) as Session;
  // After any other error the session may be valid: a starting server cannot check it yet.
  if (answer.status === 401) signInAgain();
  throw await failure(answer);
}

export async function signOut(): Promise<void> {
  await fetch('/console/session', { method: 'DELETE' });
  location.assign('/console/');
}
