"""One engine for a team: several engine cores behind one HTTP server, kept by Ray Serve (docs/team.md)."""
