"""What the tests of several rooms share: editors, servers, tiny models, recorded engines."""
