// The address of the page is its state: every view has a link that can be shared.
const ROOT = '/console';

export interface Place {
  page: 'jobs' | 'job' | 'unknown' | (typeof PAGES)[number];
  job: string;
  tab: string;
}

const PAGES = ['compare', 'queues', 'machines', 'data', 'new', 'campaigns', 'alarms', 'dashboards', 'users'] as const;

function placeOf(parts: string[]): Place {
  const [page = 'jobs', job = '', tab = ''] = parts;
  const other = PAGES.find((name) => name === page);
  if (other && parts.length === 1) return { page: other, job: '', tab: '' };
  const known = page === 'jobs' && parts.length <= 3;
  return { page: known ? (job ? 'job' : 'jobs') : 'unknown', job, tab };
}

function read(): { place: Place; query: URLSearchParams } {
  const parts = location.pathname
    .slice(ROOT.length)
    .split('/')
    .filter((part) => part)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { place: placeOf(parts), query: new URLSearchParams(location.search) };
}

let current = $state.raw(read());
let visits = $state(0);

export const route = {
  // Grows whenever a link is followed or the history is: the same view begins again.
  get visit(): number {
    return visits;
  },
  get place(): Place {
    return current.place;
  },
  query(name: string): string {
    return current.query.get(name) ?? '';
  },
};

export function jobsPath(chosen: readonly string[] = []): string {
  return link(`${ROOT}/jobs`, { jobs: chosen.join(',') });
}

export function jobPath(job: string, tab = '', query: Record<string, string> = {}): string {
  const path = `${ROOT}/jobs/${encodeURIComponent(job)}`;
  return link(tab ? `${path}/${tab}` : path, query);
}

export function comparePath(jobs: readonly string[]): string {
  return link(`${ROOT}/compare`, { jobs: jobs.join(',') });
}

export function queuesPath(): string {
  return link(`${ROOT}/queues`);
}

export function machinesPath(): string {
  return link(`${ROOT}/machines`);
}

// `from`: a job that the form begins with.
export function newJobPath(from = '', template = ''): string {
  return link(`${ROOT}/new`, { from, template });
}

export function dataPath(bucket = '', prefix = '', key = ''): string {
  return link(`${ROOT}/data`, { bucket, prefix, key });
}

// The list, or one of it.
export function campaignsPath(campaign = ''): string {
  return link(`${ROOT}/campaigns`, { campaign });
}

export function alarmsPath(alarm = ''): string {
  return link(`${ROOT}/alarms`, { alarm });
}

export function dashboardsPath(dashboard = ''): string {
  return link(`${ROOT}/dashboards`, { dashboard });
}

export function usersPath(user = ''): string {
  return link(`${ROOT}/users`, { user });
}

// The region stays the same from view to view.
function link(path: string, values: Record<string, string> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ region: route.query('region'), ...values }))
    if (value) query.set(name, value);
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export function go(path: string): void {
  if (path !== location.pathname + location.search + location.hash) history.pushState(null, '', path);
  current = read();
  visits++;
  window.scrollTo(0, 0);
}

// Changes parameters of the address; '' removes one. Filters leave no trail in the history.
export function setQuery(values: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values))
    if (value) query.set(name, value);
    else query.delete(name);
  const text = query.toString();
  // The fragment is the form of a new job.
  history.replaceState(null, '', location.pathname + (text ? `?${text}` : '') + location.hash);
  current = read();
}

// Keeps the state of a form in the address, in the part that browsers do not send.
export function setFragment(fragment: string): void {
  history.replaceState(null, '', location.pathname + location.search + fragment);
}

// Follows links inside the console without loading a page.
export function follow(event: MouseEvent): void {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.defaultPrevented)
    return;
  const anchor = (event.target as Element).closest('a');
  if (!anchor || anchor.target || anchor.hasAttribute('download') || anchor.origin !== location.origin) return;
  if (!anchor.pathname.startsWith(ROOT + '/')) return;
  event.preventDefault();
  go(anchor.pathname + anchor.search);
}

window.addEventListener('popstate', () => {
  current = read();
  visits++;
});
