// Maps the URL to the view and its state, so that every view has a link that can be shared.
const ROOT = '/console';

export interface PageRoute {
  page: 'jobs' | 'job' | 'unknown' | (typeof PAGES)[number];
  job: string;
  tab: string;
}

const PAGES = ['compare', 'queues', 'machines', 'data', 'new', 'campaigns', 'alarms', 'dashboards', 'users'] as const;

function pageRouteOf(parts: string[]): PageRoute {
  const [page = 'jobs', job = '', tab = ''] = parts;
  const other = PAGES.find((name) => name === page);
  if (other && parts.length === 1) return { page: other, job: '', tab: '' };
  const known = page === 'jobs' && parts.length <= 3;
  return { page: known ? (job ? 'job' : 'jobs') : 'unknown', job, tab };
}

function read(): { page: PageRoute; query: URLSearchParams } {
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
  return { page: pageRouteOf(parts), query: new URLSearchParams(location.search) };
}

let current = $state.raw(read());
let visits = $state(0);

export const route = {
  // Increases on every navigation (link or history), so that a page reloads even when the path is the same.
  get visit(): number {
    return visits;
  },
  get page(): PageRoute {
    return current.page;
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

// `from`: the job whose values prefill the form.
export function newJobPath(from = '', template = ''): string {
  return link(`${ROOT}/new`, { from, template });
}

export function dataPath(bucket = '', prefix = '', key = ''): string {
  return link(`${ROOT}/data`, { bucket, prefix, key });
}

// The campaigns page, or one campaign.
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

// Adds the parameters to a path. The region is kept in all links.
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

// Changes parameters of the URL; '' removes one. Adds no entry to the history.
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

// Stores the state of a form in the URL's fragment, which browsers do not send.
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
