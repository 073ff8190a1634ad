"""How good a model is. Fills go through the scheduler, so the measured code is the code that ships."""
