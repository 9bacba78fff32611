"""The console in a real browser: Chromium, driven by Playwright, checked by axe."""
