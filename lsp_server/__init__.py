"""The Midspan language server: it cuts holes at the cursor and shows the engine's fills as inline completions."""
