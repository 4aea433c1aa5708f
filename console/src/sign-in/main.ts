// The sign-in page: opens a session with an access key, or with the one-time token in the URL.
import '../theme.css';
import './sign-in.css';
import { applyTheme } from '../lib/theme';
import { sign } from './signature';

const PATH = '/console/session';

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

async function open(body: string, headers: Record<string, string>): Promise<void> {
  const answer = await fetch(PATH, { method: 'POST', body, headers, credentials: 'same-origin' });
  if (answer.ok) return;
  const text = await answer.json().then(
    (json: { message?: string }) => json.message,
    () => undefined,
  );
  throw new Error(text || `The server answered with HTTP status ${answer.status}.`);
}

// Loads the same URL again, for which the server now sends the requested page.
function proceed(): void {
  // The fragment is kept if it contains a prefilled form; a sign-in token is removed from the URL.
  if (location.hash.startsWith('#form=')) return location.reload();
  const path = location.pathname === '/console' ? '/console/' : location.pathname;
  location.replace(path + location.search);
}

function show(error: unknown): void {
  element('error').textContent =
    error instanceof TypeError ? 'The server is not reachable.' : (error as Error).message;
}

async function signIn(event: Event): Promise<void> {
  event.preventDefault();
  const button = document.querySelector('button')!;
  const secret = element<HTMLInputElement>('secret');
  button.disabled = true;
  element('error').textContent = '';
  try {
    const keys = {
      id: element<HTMLInputElement>('key').value.trim(),
      secret: secret.value.trim(),
      token: element<HTMLInputElement>('token').value.trim(),
    };
    await open('{}', sign(location.host, PATH, '{}', keys, new Date()));
    secret.value = '';
    proceed();
  } catch (error) {
    show(error);
    button.disabled = false;
    secret.select();
  }
}

async function begin(): Promise<void> {
  applyTheme();
  element('form').addEventListener('submit', signIn);
  const token = location.hash.slice(1);
  if (/^[0-9a-f]{64}$/.test(token)) {
    // First removes the token from the URL and the browser's history.
    history.replaceState(null, '', location.pathname + location.search);
    try {
      await open(JSON.stringify({ Token: token }), { 'content-type': 'application/json' });
      return proceed();
    } catch (error) {
      show(error);
    }
  } else {
    // Browsers send no SameSite cookie when a link on another site is followed, so this page may be
    // shown although there is a session.
    const session = await fetch(PATH, { credentials: 'same-origin' }).catch(() => null);
    if (session?.ok) return proceed();
  }
  element('key').focus();
}

void begin();
