// Provides the current theme as a reactive value, for plots, which choose their colours themselves.
import { currentTheme, type Theme } from './theme';

let shown = $state<Theme>(currentTheme());
new MutationObserver(() => (shown = currentTheme())).observe(document.documentElement, {
  attributeFilter: ['data-theme'],
});

export const theme = {
  get current(): Theme {
    return shown;
  },
};
