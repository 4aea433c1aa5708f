// Builds the pages into the folder that OUT names, or dist. The sign-in page is built apart
// (--mode sign-in), so that it and the application share no file: without a session a visitor gets
// the sign-in page alone.
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
