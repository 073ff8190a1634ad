"""`midspan setup`: puts Midspan into the editors of this machine, and takes it out again."""
