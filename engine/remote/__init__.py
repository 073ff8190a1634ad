"""Models that run on a server which the user named: fills are answered over HTTP and no network is loaded here."""
