// The sign-in page: opens a session by an access key, or by the one-time token in the address.
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
  throw new Error(text || `The server answered ${answer.status}.`);
}

// The same address again, which now is the page that was asked for.
function proceed(): void {
  const path = location.pathname === '/console' ? '/console/' : location.pathname;
  location.replace(path + location.search);
}

function show(error: unknown): void {
  element('error').textContent =
    error instanceof TypeError ? 'The server cannot be reached.' : (error as Error).message;
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
    // Out of the address and the history before anything else.
    history.replaceState(null, '', location.pathname + location.search);
    try {
      await open(JSON.stringify({ Token: token }), { 'content-type': 'application/json' });
      return proceed();
    } catch (error) {
      show(error);
    }
  } else {
    // A link from another site comes without the cookie, though the browser has a session.
    const session = await fetch(PATH, { credentials: 'same-origin' }).catch(() => null);
    if (session?.ok) return proceed();
  }
  element('key').focus();
}

void begin();
