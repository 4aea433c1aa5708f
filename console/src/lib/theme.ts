// Stores and applies the theme: the system's, unless the user chose one.
export type Theme = 'light' | 'dark';
const KEY = 'trainyard-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

function chosen(): Theme | null {
  const value = localStorage.getItem(KEY);
  return value === 'light' || value === 'dark' ? value : null;
}

export function currentTheme(): Theme {
  return chosen() ?? (system.matches ? 'dark' : 'light');
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = currentTheme();
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme();
}

system.addEventListener('change', applyTheme);
