"""How good a model is, measured through the scheduler, so that what is measured is what ships."""
