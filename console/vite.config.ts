// Builds the pages into the folder $OUT, or dist. The sign-in page is built separately (--mode
// sign-in), so that it shares no file with the application: a browser without a session gets the
// sign-in page only.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig(({ mode }) => {
  const signIn = mode === 'sign-in';
  return {
    base: '/console/',
    plugins: [svelte()],
    publicDir: false,
    build: {
      outDir: process.env.OUT ?? 'dist',
      emptyOutDir: !signIn,
      assetsDir: signIn ? 'sign-in' : 'assets',
      assetsInlineLimit: 0, // the content policy allows no data: URLs
      modulePreload: { polyfill: false },
      target: 'es2020',
      reportCompressedSize: false,
      rollupOptions: { input: signIn ? 'sign-in.html' : 'index.html' },
    },
  };
});
