// The theme that is shown, for what draws its colours itself.
import { currentTheme, type Theme } from './theme';

let shown = $state<Theme>(currentTheme());
new MutationObserver(() => (shown = currentTheme())).observe(document.documentElement, {
  attributeFilter: ['data-theme'],
});

export const themeOf = {
  get now(): Theme {
    return shown;
  },
};
