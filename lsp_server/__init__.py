"""The Midspan language server: cuts holes around the cursor and offers the engine's fills as inline completions."""
