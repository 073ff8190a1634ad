"""Models on a server that the user names: the engine asks it over HTTP and loads no network of its own."""
